// The merges of a BPE by pair of ids: a flat table that is only read after it was filled.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {

struct Merge {
  uint32_t rank = 0;    // smaller goes first
  int32_t made_id = 0;  // what the pair becomes
};

class MergeTable {
 public:
  explicit MergeTable(size_t expected = 0)
      : slots_(std::bit_ceil(2 * expected + 2)), mask_(slots_.size() - 1) {}

  // Of equal pairs the later one counts. At most as many pairs as were `expected`.
  void set(int32_t left, int32_t right, Merge merge) {
    Slot& slot = slots_[place(key(left, right))];
    slot = {key(left, right), merge};
  }

  // nullptr: the pair is never merged.
  const Merge* find(int32_t left, int32_t right) const {
    const uint64_t wanted = key(left, right);
    const Slot& slot = slots_[place(wanted)];
    return slot.key == wanted ? &slot.merge : nullptr;
  }

 private:
  static constexpr uint64_t empty = ~uint64_t{0};  // ids are not negative
  struct Slot {
    uint64_t key = empty;
    Merge merge;
  };

  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t place(uint64_t wanted) const {
    uint64_t hash = wanted * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
    size_t at = hash & mask_;
    while (slots_[at].key != empty && slots_[at].key != wanted) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Slot> slots_;
  size_t mask_;
};

}  // namespace tandem
