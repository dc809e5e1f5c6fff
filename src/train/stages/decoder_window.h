// Which part of a clip is spoken and judged. A window of frames is computed so that the judged part
// of it equals a pass over the whole clip: with the vocoder's context on each side, or with the
// clip's own end there. All numbers are of rows, [B] int64 on the device.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

struct WindowSize {
  int64_t judged = 0;    // frames
  int64_t computed = 0;  // frames; judged and the context, at most the longest clip's
  int64_t context = 0;   // frames on each side
  int64_t hop = 256;     // samples a frame
};

struct SoundWindow {
  at::Tensor first;     // first judged frame of the clip
  at::Tensor computed;  // first computed one
  // Judged samples that count, from the first on: those of the recording that equal the whole
  // pass. A clip that is shorter than what is computed lacks its last `context` frames: what is
  // behind its end reaches into them.
  at::Tensor valid;
};

// `unit` [B] in [0, 1) chooses the place; `frames` of each clip, `samples` of its recording.
SoundWindow place_window(const WindowSize& size, const at::Tensor& frames,
                         const at::Tensor& samples, const at::Tensor& unit);

// [B, samples] -> [B, count] from sample `first` [B] on; 0 where the row has none.
at::Tensor cut_rows(const at::Tensor& waves, const at::Tensor& first, int64_t count);
// 0 beyond each row's first `valid` samples.
at::Tensor silence_beyond(const at::Tensor& waves, const at::Tensor& valid);

}  // namespace tandem
