#include "observe/tune_clips.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "observe/diagnose/series.h"

namespace tandem {
namespace {

constexpr int most_rounds = 8;

ClipTimes summary(const std::vector<double>& values) {
  const SeriesFigures figures = analyse_series(values, 0);
  return {.seconds = figures.mean,
          .deviation = figures.variation(),
          .count = static_cast<int64_t>(figures.count)};
}

}  // namespace

ClipExcerpt excerpt_of(int64_t new_tokens, int64_t window_tokens) {
  constexpr int64_t tokens = 100, few = 10;
  if (new_tokens <= 2 * tokens || new_tokens > window_tokens)
    return {.whole = new_tokens, .tokens = new_tokens};
  return {.whole = new_tokens, .prompt = (new_tokens - tokens) / 2, .tokens = tokens, .few = few};
}

std::string describe(const ClipExcerpt& excerpt) {
  if (excerpt.is_whole()) return "";
  return fmt::format("{} of {} tokens, from the middle of a clip, scaled to all of it",
                     excerpt.tokens, excerpt.whole);
}

ClipTimes time_clips(const ClipExcerpt& excerpt, double seconds,
                     const std::function<double(int64_t prompt, int64_t tokens)>& make) {
  const auto once = [&] { return make(excerpt.prompt, excerpt.tokens); };
  const double first = once();  // captures and warms up
  // It counts where it took so long that this is lost in it.
  if (excerpt.is_whole() && first > 2 * seconds) return {.seconds = first, .count = 1};
  const double start = excerpt.is_whole() ? 0 : make(0, excerpt.few);
  std::vector<double> wholes;
  double passed = 0;
  // Two tell how far they differ, unless they take far too long.
  const auto enough = [&] { return passed >= (wholes.size() < 2 ? 4 * seconds : seconds); };
  while (wholes.size() < most_rounds && (wholes.empty() || !enough())) {
    const double few = excerpt.is_whole() ? 0 : make(excerpt.prompt, excerpt.few);
    const double many = once();
    passed += few + many;
    const double token =
        std::max(0.0, many - few) / static_cast<double>(excerpt.tokens - excerpt.few);
    wholes.push_back(start + token * static_cast<double>(excerpt.whole - excerpt.few));
  }
  return summary(wholes);
}

}  // namespace tandem
