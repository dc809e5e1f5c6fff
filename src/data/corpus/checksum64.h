// A 64-bit sum over bytes for files and duplicates: fast (four lanes of eight bytes), the same on
// every machine of our byte order, not meant against an attacker.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "util/counted_random.h"

namespace tandem {

class Checksum64 {
 public:
  void add(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    total_ += size;
    while (size >= 32) {
      for (size_t lane = 0; lane < 4; ++lane) step(lane, load(bytes + 8 * lane, 8));
      bytes += 32;
      size -= 32;
    }
    for (size_t lane = 0; size > 0; ++lane) {
      const size_t part = size < 8 ? size : 8;
      step(lane, load(bytes, part));
      bytes += part;
      size -= part;
    }
  }
  uint64_t value() const {
    uint64_t sum = mix_bits(total_);
    for (const uint64_t lane : lanes_) sum = mix_bits(sum ^ lane);
    return sum;
  }

 private:
  static uint64_t load(const unsigned char* bytes, size_t size) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, size);
    return word;
  }
  void step(size_t lane, uint64_t word) {
    uint64_t x = (lanes_[lane] ^ word) * 0x9fb21c651e98df25ULL;
    lanes_[lane] = x ^ (x >> 29);
  }
  uint64_t lanes_[4] = {0x9e3779b97f4a7c15ULL, 0xbf58476d1ce4e5b9ULL, 0x94d049bb133111ebULL,
                        0xd6e8feb86659fd93ULL};
  uint64_t total_ = 0;
};

inline uint64_t checksum64(const void* data, size_t size) {
  Checksum64 sum;
  sum.add(data, size);
  return sum.value();
}
inline uint64_t checksum64(std::string_view bytes) {
  return checksum64(bytes.data(), bytes.size());
}

}  // namespace tandem
