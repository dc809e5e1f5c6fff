#include "train/batches/voice_slices.h"

#include <algorithm>

#include "util/counted_random.h"

namespace tandem {

VoiceSlice draw_voice_slice(int64_t samples, const VoiceSliceOptions& options, uint64_t clip,
                            uint64_t epoch) {
  if (samples < 1) return {};
  const auto below = [&](int64_t bound, const char* purpose) {
    return static_cast<int64_t>(
        counted_below(static_cast<uint64_t>(bound), options.seed, purpose, clip, epoch));
  };
  int64_t length = (options.shortest + options.longest) / 2;
  if (!options.fixed)
    length = options.shortest + below(options.longest - options.shortest + 1, "slice length");
  if (length > samples) length = samples / 2;
  length = std::max<int64_t>(1, length);
  return {options.fixed ? 0 : below(samples - length + 1, "slice start"), length};
}

std::vector<size_t> voice_rows(const std::vector<int64_t>& clips,
                               const std::vector<std::string_view>& speakers) {
  const size_t rows = clips.size();
  std::vector<size_t> from(rows);
  for (size_t row = 0; row < rows; ++row) {
    size_t other = (row + 1) % rows;
    // A clip that stands in for another may be in a batch twice: it says nothing new then.
    while (other != row && (speakers[row].empty() || speakers[other] != speakers[row] ||
                            clips[other] == clips[row]))
      other = (other + 1) % rows;
    from[row] = other;
  }
  return from;
}

int64_t longest_voice_slice(int64_t samples, const VoiceSliceOptions& options) {
  if (samples < options.shortest) return std::max<int64_t>(1, samples / 2);
  return std::min(samples, options.longest);
}

}  // namespace tandem
