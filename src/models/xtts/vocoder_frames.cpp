// The two linear interpolations in front of the vocoder, at absolute positions.
#include <ATen/ATen.h>

#include <cmath>

#include "models/xtts/vocoder.h"

namespace tandem {
namespace {

// Where outputs [first, first + count) of a linear interpolation read: place p of the output lies
// at (p + 0.5) / scale - 0.5 of the input, at least 0. Rounded to float32 once, as PyTorch's fused
// multiply and add does it, which shows in long clips.
struct Reading {
  at::Tensor low, high;  // [count] int64
  at::Tensor part;       // [count] float32, of `high`
};

Reading read_places(int64_t first, int64_t count, double scale, int64_t inputs,
                    const at::Device& device) {
  const auto options = at::TensorOptions().dtype(at::kDouble).device(device);
  const double step = static_cast<float>(1.0 / scale);
  const at::Tensor place =
      ((at::arange(first, first + count, options) + 0.5) * step - 0.5).to(at::kFloat).clamp_min(0);
  const at::Tensor low = place.floor().clamp_max(static_cast<double>(inputs - 1));
  const at::Tensor index = low.to(at::kLong);
  return {index, (index + 1).clamp_max(inputs - 1), (place - low).clamp(0, 1)};
}

// x [B, T, D], read at `at` less `origin`.
at::Tensor read(const at::Tensor& x, const Reading& at, int64_t origin) {
  const at::Tensor part = at.part.view({1, -1, 1});
  return x.index_select(1, at.low - origin) * (1 - part) +
         x.index_select(1, at.high - origin) * part;
}

}  // namespace

int64_t Vocoder::frames_of(int64_t codes) const {
  return static_cast<int64_t>(static_cast<double>(codes * frames_a_code) * frame_rate_ratio);
}

at::Tensor Vocoder::frames(const at::Tensor& latents, int64_t first, int64_t count) const {
  const int64_t codes = latents.size(1), mels = codes * frames_a_code;
  if (codes == 0 || count == 0) return latents.new_empty({latents.size(0), latents.size(2), 0});
  const at::Device device = latents.device();
  const at::Tensor x = latents.to(at::kFloat);
  // Interpolations that change no length copy: the second one of one or two codes.
  const bool same_rate = frames_of(codes) == mels;
  int64_t from = first, needed = count;
  if (!same_rate) {  // with a place to spare on each side, whatever rounding does
    from = std::max<int64_t>(
        0, static_cast<int64_t>(static_cast<double>(first) / frame_rate_ratio) - 2);
    const auto to = static_cast<int64_t>(static_cast<double>(first + count) / frame_rate_ratio) + 3;
    needed = std::min(mels, to) - from;
  }
  const at::Tensor fine =
      frames_a_code == 1
          ? x.narrow(1, from, needed)
          : read(x, read_places(from, needed, static_cast<double>(frames_a_code), codes, device),
                 0);
  const at::Tensor out =
      same_rate ? fine
                : read(fine, read_places(first, count, frame_rate_ratio, mels, device), from);
  return out.transpose(1, 2).to(latents.scalar_type()).contiguous();
}

at::Tensor at_speed(const at::Tensor& latents, double speed) {
  if (speed == 1.0) return latents;
  const double scale = 1.0 / std::max(speed, 0.05);
  const int64_t codes = latents.size(1);
  const auto count = static_cast<int64_t>(static_cast<double>(codes) * scale);
  if (count == codes) return latents;
  return read(latents, read_places(0, count, scale, codes, latents.device()), 0);
}

}  // namespace tandem
