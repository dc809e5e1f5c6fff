#include "audio/signal/griffin_lim.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr double tiny = 1e-16;

struct Frames {
  const MelOptions& mel;
  at::Tensor window;
  int64_t samples;

  at::Tensor spectrum(const at::Tensor& wave) const {
    return at::stft(wave, mel.n_fft, mel.hop, mel.window_length, window, /*center=*/true, "reflect",
                    /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true);
  }
  at::Tensor wave(const at::Tensor& spectrum) const {
    return at::istft(spectrum, mel.n_fft, mel.hop, mel.window_length, window, /*center=*/true,
                     /*normalized=*/false, /*onesided=*/true, samples);
  }
};

at::Tensor first_phases(at::IntArrayRef shape, uint64_t seed) {
  at::Tensor angles = at::empty(shape, at::kFloat);
  auto* angle = angles.mutable_data_ptr<float>();
  for (int64_t i = 0; i < angles.numel(); ++i) {
    const uint64_t draw = counted_draw(seed, "griffin-lim phase", static_cast<uint64_t>(i), 0);
    angle[i] = static_cast<float>(2 * std::numbers::pi * static_cast<double>(draw >> 40) * 0x1p-24);
  }
  return at::polar(at::ones_like(angles), angles);
}

}  // namespace

at::Tensor spectrum_of_mels(const at::Tensor& log_mel, const MelOptions& mel, int iterations) {
  const at::NoGradGuard no_grad;
  if (mel.standardise || mel.preemphasis != 0) {
    throw Error(ErrorKind::internal,
                "no sound can be made of mels that were standardised or pre-emphasised");
  }
  const at::Tensor mels = (log_mel.to(at::kCPU, at::kFloat).exp() - mel.add).clamp_min(0);
  const at::Tensor filters = mel_filters(mel);  // [bins, mels]
  const at::Tensor upwards = at::matmul(filters, mels);
  const at::Tensor both = at::matmul(filters, filters.t());
  // Multiplicative updates: from a positive start the answer is never negative, bins that no filter
  // hears are silent at once, and each round lessens the square error.
  at::Tensor found = upwards / filters.square().sum(1, /*keepdim=*/true).clamp_min(tiny);
  for (int i = 0; i < iterations; ++i)
    found = found * upwards / at::matmul(both, found).clamp_min(tiny);
  return mel.power == 2 ? found.sqrt() : found;
}

at::Tensor wave_of_spectrum(const at::Tensor& magnitudes, const MelOptions& mel,
                            const GriffinLimOptions& options) {
  const at::NoGradGuard no_grad;
  const int64_t count = magnitudes.size(1);
  // Reflection at the ends needs half a frame of sound.
  const int64_t samples = (count - 1) * mel.hop;
  if (count < 2 || samples <= mel.n_fft / 2) return at::zeros({std::max<int64_t>(0, samples)});
  const at::Tensor window = mel.window == WindowShape::hann
                                ? at::hann_window(mel.window_length, at::kFloat)
                                : at::hamming_window(mel.window_length, at::kFloat);
  const Frames frames{mel, window, samples};
  at::Tensor phases = first_phases(magnitudes.sizes(), options.seed), before;
  for (int i = 0; i < options.iterations; ++i) {
    const at::Tensor rebuilt = frames.spectrum(frames.wave(magnitudes * phases));
    at::Tensor next = rebuilt;
    if (before.defined()) next = rebuilt - before * (options.momentum / (1 + options.momentum));
    phases = next / next.abs().clamp_min(tiny);
    before = rebuilt;
  }
  return frames.wave(magnitudes * phases);
}

at::Tensor griffin_lim(const at::Tensor& log_mel, const MelOptions& mel,
                       const GriffinLimOptions& options) {
  return wave_of_spectrum(spectrum_of_mels(log_mel, mel, options.spectrum_iterations), mel,
                          options);
}

}  // namespace tandem
