#include "text/token_trie.h"

#include <algorithm>
#include <cstring>

namespace tandem {

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, int32_t>> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  struct Span {
    size_t begin, end;  // the entries that share the path to a node
  };
  std::vector<Span> level{{0, entries.size()}}, next;
  labels_.push_back(0);
  values_.push_back(none);
  for (size_t depth = 0; !level.empty(); ++depth) {
    next.clear();
    for (const Span& span : level) {
      children_.push_back(static_cast<uint32_t>(labels_.size()));
      size_t at = span.begin;
      while (at < span.end && entries[at].first.size() <= depth) ++at;
      while (at < span.end) {
        const char label = entries[at].first[depth];
        size_t end = at;
        int32_t value = none;
        for (; end < span.end && entries[end].first[depth] == label; ++end) {
          if (entries[end].first.size() == depth + 1) value = entries[end].second;
        }
        labels_.push_back(static_cast<unsigned char>(label));
        values_.push_back(value);
        next.push_back({at, end});
        at = end;
      }
    }
    level.swap(next);
  }
  children_.push_back(static_cast<uint32_t>(labels_.size()));
  root_.assign(256, 0);
  for (uint32_t child = children_[0]; child < children_[1]; ++child) root_[labels_[child]] = child;
}

uint32_t TokenTrie::step(uint32_t node, unsigned char byte) const {
  if (node == 0) return root_.empty() ? 0 : root_[byte];
  const uint32_t first = children_[node], count = children_[node + 1] - first;
  if (count == 0) return 0;
  const unsigned char* labels = labels_.data() + first;
  const void* found = std::memchr(labels, byte, count);
  if (found == nullptr) return 0;
  return first + static_cast<uint32_t>(static_cast<const unsigned char*>(found) - labels);
}

}  // namespace tandem
