// Which beginnings of prompts have their keys and values kept, and in which slot. There is room for
// a fixed number; the one not used for longest makes way. Beginnings are compared byte for byte, so
// one is never taken for another. One thread uses it.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <list>
#include <span>
#include <vector>

namespace tandem {

class PrefixIndex {
 public:
  explicit PrefixIndex(int64_t room) : room_(room) {}

  int64_t room() const { return room_; }
  int64_t size() const { return static_cast<int64_t>(kept_.size()); }

  // The slot of these input rows; -1: not kept.
  int64_t find(std::span<const float> rows) {
    // Others differ in their first numbers, so only the one that is found is read to its end.
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      if (!same(at->rows, rows)) continue;
      kept_.splice(kept_.begin(), kept_, at);
      return at->slot;
    }
    return -1;
  }

  // A slot for rows that are not kept yet; -1 where there is no room for any. Up to `room` calls in
  // a row give different slots.
  int64_t keep(std::span<const float> rows) {
    if (room_ <= 0) return -1;
    if (size() < room_) {
      kept_.push_front({.slot = size()});
    } else {
      kept_.splice(kept_.begin(), kept_, std::prev(kept_.end()));
    }
    kept_.front().rows.assign(rows.begin(), rows.end());
    return kept_.front().slot;
  }

 private:
  struct Kept {
    std::vector<float> rows;
    int64_t slot = 0;
  };
  static bool same(const std::vector<float>& kept, std::span<const float> rows) {
    return kept.size() == rows.size() &&
           std::memcmp(kept.data(), rows.data(), rows.size_bytes()) == 0;
  }

  int64_t room_;
  std::list<Kept> kept_;  // the last used first
};

}  // namespace tandem
