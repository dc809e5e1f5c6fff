// How a clip is cut into windows that the model's positions hold: each begins with the last frames
// of the one before, read as a prompt.
#pragma once

#include <cstdint>
#include <vector>

#include "generate/music_engine.h"
#include "models/musicgen/musicgen_config.h"

namespace tandem {

struct MusicWindow {
  int64_t first_frame = 0;    // of the clip, where the window begins
  int64_t prompt_frames = 0;  // known before: of the clip's own prompt or of windows before
  int64_t new_tokens = 0;     // columns drawn
  int64_t first_step = 0;     // columns drawn in windows before
  int64_t frames = 0;         // of the window, prompt included
};

// One window where prompt and new tokens fit `window_tokens` and the model's positions; else
// windows that keep at most `kept_tokens` frames. Together they give the frames that one long
// window would. Throws Error(config) when an option leaves no room for new frames.
std::vector<MusicWindow> music_windows(const MusicDecoderSize& size, const MusicOptions& options,
                                       int64_t prompt_frames);

}  // namespace tandem
