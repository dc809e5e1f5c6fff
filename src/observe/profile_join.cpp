#include "observe/profile_join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "observe/profile_kernels.h"
#include "observe/profile_operations.h"

namespace tandem {
namespace {

constexpr size_t furthest = 64;          // operations in a row that one of the two may have missed
constexpr size_t agreement = 16;         // operations that must follow alike behind a gap
constexpr double least_partners = 0.95;  // of the operations of a thread

// In the order in which they began.
struct Story {
  std::vector<std::string_view> names;
  std::vector<uint64_t> numbers;  // Kineto's, or places in the record
};
using Pairs = std::vector<std::pair<size_t, size_t>>;

bool alike_from(const Story& a, size_t i, const Story& b, size_t j) {
  const size_t most = std::min({agreement, a.names.size() - i, b.names.size() - j});
  for (size_t k = 0; k < most; ++k)
    if (a.names[i + k] != b.names[j + k]) return false;
  return most > 0;
}

// Where both go on alike behind `i` and `j`, after as few as possible were left out.
std::optional<std::pair<size_t, size_t>> behind_gap(const Story& a, size_t i, const Story& b,
                                                    size_t j) {
  for (size_t gap = 1; gap <= furthest; ++gap)
    for (size_t left = 0; left <= gap; ++left)
      if (i + left < a.names.size() && j + gap - left < b.names.size() &&
          alike_from(a, i + left, b, j + gap - left))
        return std::pair(i + left, j + gap - left);
  return std::nullopt;
}

Pairs pairs_of(const Story& a, const Story& b) {
  Pairs pairs;
  for (size_t i = 0, j = 0; i < a.names.size() && j < b.names.size();) {
    if (a.names[i] == b.names[j]) {
      pairs.emplace_back(i++, j++);
    } else if (const auto next = behind_gap(a, i, b, j)) {
      std::tie(i, j) = *next;
    } else {
      break;
    }
  }
  const auto longer = static_cast<double>(std::max(a.names.size(), b.names.size()));
  if (static_cast<double>(pairs.size()) < least_partners * longer) return {};
  return pairs;
}

}  // namespace

std::unordered_map<uint64_t, size_t> joined_operations(
    const OperationRecord& record, const std::vector<LaunchedOperation>& launches) {
  std::map<uint64_t, Story> ours, theirs;  // by LibTorch's number of a thread
  std::vector<size_t> order(record.operations.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return record.operations[i].order; });
  for (const size_t i : order) {
    const TracedOperation& one = record.operations[i];
    if (one.thread >= record.thread_numbers.size()) return {};
    Story& story = ours[record.thread_numbers[one.thread]];
    story.names.push_back(record.names[one.name]);
    story.numbers.push_back(i);
  }
  std::vector<const LaunchedOperation*> begun;
  begun.reserve(launches.size());
  for (const LaunchedOperation& one : launches) begun.push_back(&one);
  std::ranges::sort(begun, {}, [](const LaunchedOperation* one) { return one->number; });
  for (const LaunchedOperation* one : begun) {
    Story& story = theirs[one->thread];
    story.names.push_back(one->name);
    story.numbers.push_back(one->number);
  }
  std::unordered_map<uint64_t, size_t> places;
  for (const auto& [thread, story] : ours) {
    const auto other = theirs.find(thread);
    if (other == theirs.end()) continue;
    for (const auto& [i, j] : pairs_of(story, other->second))
      places[other->second.numbers[j]] = story.numbers[i];
  }
  return places;
}

}  // namespace tandem
