// A random permutation of 0..n-1 as arithmetic: the image of any place is computed by itself, with
// no table, so that an order can be entered anywhere. A Feistel network on the smallest even number
// of bits that holds n; places beyond n are walked through until one falls inside (less than four
// steps on average).
#pragma once

#include <bit>
#include <cstdint>

#include "util/counted_random.h"

namespace tandem {

class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key)
      : size_(size),
        key_(key),
        half_bits_((std::bit_width(size > 1 ? size - 1 : 1) + 1) / 2),
        half_mask_((uint64_t{1} << half_bits_) - 1) {}

  // `place` must be below the size.
  uint64_t operator[](uint64_t place) const {
    do place = scramble(place);
    while (place >= size_);
    return place;
  }

 private:
  uint64_t scramble(uint64_t x) const {
    uint64_t left = x >> half_bits_, right = x & half_mask_;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t mixed = left ^ (mix_bits(mix_bits(key_ + round) ^ right) & half_mask_);
      left = right;
      right = mixed;
    }
    return (left << half_bits_) | right;
  }

  uint64_t size_, key_;
  int half_bits_;
  uint64_t half_mask_;
};

}  // namespace tandem
