#include "train/stages/decoder_window.h"

#include <ATen/ATen.h>

namespace tandem {

SoundWindow place_window(const WindowSize& size, const at::Tensor& frames,
                         const at::Tensor& samples, const at::Tensor& unit) {
  SoundWindow window;
  const at::Tensor whole = frames >= size.computed;
  const at::Tensor end = at::where(whole, frames, frames - size.context);
  const at::Tensor places = (end - size.judged + 1).clamp_min(1);
  const at::Tensor drawn = (unit.to(at::kDouble) * places).floor().to(at::kLong);
  window.first = at::minimum(drawn, places - 1);
  window.computed = at::minimum(window.first - size.context, frames - size.computed).clamp_min(0);
  const at::Tensor sound = at::minimum(end * size.hop, samples) - window.first * size.hop;
  window.valid = sound.clamp(0, size.judged * size.hop);
  return window;
}

at::Tensor cut_rows(const at::Tensor& waves, const at::Tensor& first, int64_t count) {
  const at::Tensor place = first.unsqueeze(1) + at::arange(count, first.options()).unsqueeze(0);
  const at::Tensor found = waves.gather(1, place.clamp_max(waves.size(1) - 1));
  return found.masked_fill(place >= waves.size(1), 0);
}

at::Tensor silence_beyond(const at::Tensor& waves, const at::Tensor& valid) {
  const at::Tensor place = at::arange(waves.size(1), valid.options()).unsqueeze(0);
  return waves.masked_fill(place >= valid.unsqueeze(1), 0);
}

}  // namespace tandem
