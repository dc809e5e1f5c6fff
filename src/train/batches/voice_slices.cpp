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

int64_t longest_voice_slice(int64_t samples, const VoiceSliceOptions& options) {
  if (samples < options.shortest) return std::max<int64_t>(1, samples / 2);
  return std::min(samples, options.longest);
}

}  // namespace tandem
