// Filters in float32 with the operations of torchaudio.functional.melscale_fbanks in its order, so
// that not a bit differs.
#include <ATen/ATen.h>

#include <cmath>

#include "audio/signal/mel.h"

namespace tandem {
namespace {

// Slaney's scale: linear below 1000 Hz, logarithmic above.
constexpr double linear_step = 200.0 / 3, log_begin_hz = 1000.0;
constexpr double log_begin_mel = log_begin_hz / linear_step;
const double log_step = std::log(6.4) / 27.0;

double to_mel(double hz, MelScale scale) {
  if (scale == MelScale::htk) return 2595.0 * std::log10(1.0 + hz / 700.0);
  if (hz < log_begin_hz) return hz / linear_step;
  return log_begin_mel + std::log(hz / log_begin_hz) / log_step;
}

at::Tensor to_hz(const at::Tensor& mel, MelScale scale) {
  if (scale == MelScale::htk) return 700.0 * (at::pow(10.0, mel / 2595.0) - 1.0);
  return at::where(mel >= log_begin_mel, log_begin_hz * at::exp(log_step * (mel - log_begin_mel)),
                   linear_step * mel);
}

}  // namespace

at::Tensor mel_filters(const MelOptions& o) {
  at::NoGradGuard no_grad;
  const at::Tensor bins = at::linspace(0, o.sample_rate / 2, o.n_fft / 2 + 1);
  const at::Tensor points =
      to_hz(at::linspace(to_mel(o.f_min, o.scale), to_mel(o.f_max, o.scale), o.mels + 2), o.scale);
  const at::Tensor widths = points.slice(0, 1) - points.slice(0, 0, -1);
  const at::Tensor slopes = points.unsqueeze(0) - bins.unsqueeze(1);
  const at::Tensor rising = -1.0 * slopes.slice(1, 0, -2) / widths.slice(0, 0, -1);
  const at::Tensor falling = slopes.slice(1, 2) / widths.slice(0, 1);
  at::Tensor filters = at::minimum(rising, falling).clamp_min_(0);
  if (o.area_norm) filters.mul_((2.0 / (points.slice(0, 2) - points.slice(0, 0, -2))).unsqueeze(0));
  return filters;
}

}  // namespace tandem
