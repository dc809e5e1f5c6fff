// Byte strings with a number each, found by walking a text byte by byte. Immutable once built; any
// number of threads may walk it. The children of a node are neighbours (nodes stand in
// breadth-first order), so that a step is one search in a few adjoining bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

class TokenTrie {
 public:
  static constexpr int32_t none = -1;

  TokenTrie() = default;
  // Of equal strings the later one counts. Empty strings are left out; values are not negative.
  explicit TokenTrie(std::vector<std::pair<std::string_view, int32_t>> entries);

  bool empty() const { return labels_.size() <= 1; }

  // Calls `found(end, value)` for every string that starts at `at`, shortest first.
  template <typename Found>
  void prefixes(std::string_view text, size_t at, Found&& found) const {
    for (uint32_t node = 0; at < text.size();) {
      node = step(node, static_cast<unsigned char>(text[at]));
      if (node == 0) return;
      ++at;
      if (values_[node] != none) found(at, values_[node]);
    }
  }

  // The longest string that starts at `at`: its end and value, value `none` when there is none.
  std::pair<size_t, int32_t> longest(std::string_view text, size_t at) const {
    std::pair<size_t, int32_t> best{at, none};
    prefixes(text, at, [&best](size_t end, int32_t value) { best = {end, value}; });
    return best;
  }

  bool starts(unsigned char byte) const { return !root_.empty() && root_[byte] != 0; }

  int32_t value_of(std::string_view whole) const {
    const auto [end, value] = longest(whole, 0);
    return end == whole.size() ? value : none;
  }

 private:
  uint32_t step(uint32_t node, unsigned char byte) const;  // 0: no such child

  std::vector<uint32_t> root_;         // by byte
  std::vector<unsigned char> labels_;  // the byte that leads to a node
  std::vector<uint32_t> children_;     // of node n: from children_[n] to children_[n + 1]
  std::vector<int32_t> values_;
};

}  // namespace tandem
