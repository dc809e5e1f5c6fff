// A stretch of sound to be made from latents: whole frames of 256 samples. Windows of one clip,
// joined, are what one pass over the whole clip gives.
#pragma once

#include <ATen/core/TensorBody.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "models/xtts/vocoder.h"

namespace tandem {

struct SoundWindow {
  at::Tensor latents;            // [codes, D] float32: those known so far
  at::Tensor speaker;            // [512] float32 on the CPU
  bool last = true;              // no more latents will come
  int64_t first = 0, count = 0;  // frames wanted

  // Frames to be computed: with what each side reaches, cut where the clip begins and ends.
  int64_t from(const Vocoder& vocoder) const {
    return std::max<int64_t>(0, first - vocoder.context_frames());
  }
  int64_t to(const Vocoder& vocoder) const {
    const int64_t end = first + count + vocoder.context_frames();
    return last ? std::min(end, vocoder.frames_of(latents.size(0))) : end;
  }
};

// How many frames of a clip are final when `codes` latents are known and more may come: those that
// neither the interpolations at the end nor the reach of the convolutions can still change.
inline int64_t final_frames(const Vocoder& vocoder, int64_t codes) {
  const double fine = static_cast<double>(codes * vocoder.frames_a_code) -
                      static_cast<double>(vocoder.frames_a_code) / 2 - 1.5;
  const auto known = static_cast<int64_t>(std::floor(fine * vocoder.frame_rate_ratio)) - 1;
  return std::max<int64_t>(0, known - vocoder.context_frames());
}

// Makes sound on a device. One thread uses it.
class SoundMaker {
 public:
  virtual ~SoundMaker() = default;
  // Queued on the current stream; [count * 256] float32 on the device each.
  virtual std::vector<at::Tensor> sound(const std::vector<SoundWindow>& windows) = 0;
};

// The operations of the reference, on the device where `vocoder` lives; each window by itself.
std::unique_ptr<SoundMaker> make_plain_sound_maker(const Vocoder& vocoder);
// Half precision products by kernels of ours, all windows at once, on the current CUDA device.
std::unique_ptr<SoundMaker> make_cuda_sound_maker(const Vocoder& vocoder);

}  // namespace tandem
