// One clip made ready on the calling thread: what the feed does with a batch on its device
// (resampled, silence trimmed, of one loudness), bit by bit the same on the CPU.
#pragma once

#include <vector>

#include "data/corpus/clip_index.h"
#include "data/feed/speech_batches.h"

namespace tandem {

struct ShapedClip {
  float* samples = nullptr;  // in one of the two buffers
  int64_t count = 0;
};

// `raw` holds the clip at `rate`; `resampled` is room for it at the rate of `options`.
ShapedClip shape_clip(std::vector<float>& raw, int rate, std::vector<float>& resampled,
                      const SpeechOptions& options);

// The same read from its file, [1, samples]. Any thread. Throws AudioError.
Waves read_clip(const ClipIndex& index, int64_t row, const SpeechOptions& options);

}  // namespace tandem
