#include "audio/signal/loudness.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <numbers>

#include "audio/signal/device_kernels.h"
#include "audio/signal/ragged.h"

namespace tandem {

double gain_of_clip(const float* in, int64_t samples, int rate, double target, double limit) {
  const double loudness = loudness_of_clip(in, samples, rate);
  double gain = std::isfinite(loudness) ? std::pow(10.0, (target - loudness) / 20) : 1.0;
  float peak = 0;
  for (int64_t t = 0; t < samples; ++t) peak = std::max(peak, std::abs(in[t]));
  if (limit > 0 && peak * gain > limit) gain = limit / peak;
  return gain;
}

// The recommendation gives coefficients for 48 kHz only. These are the analogue filters behind them
// (corner, gain and quality as published by B. De Man, "Evaluation of implementations of the EBU
// R128 loudness measurement", 2018), turned digital by the bilinear transform at any rate.
KWeighting k_weighting(int sample_rate) {
  KWeighting k;
  {
    const double corner = 1681.974450955533, decibels = 3.999843853973347, q = 0.7071752369554196;
    const double w = std::tan(std::numbers::pi * corner / sample_rate);
    const double high = std::pow(10.0, decibels / 20), band = std::pow(high, 0.4996667741545416);
    const double a0 = 1 + w / q + w * w;
    k.shelf = {.b0 = (high + band * w / q + w * w) / a0,
               .b1 = 2 * (w * w - high) / a0,
               .b2 = (high - band * w / q + w * w) / a0,
               .a1 = 2 * (w * w - 1) / a0,
               .a2 = (1 - w / q + w * w) / a0};
  }
  const double corner = 38.13547087602444, q = 0.5003270373238773;
  const auto corner_at = [&](int rate) { return std::tan(std::numbers::pi * corner / rate); };
  const auto norm = [&](double w) { return 1 + w / q + w * w; };
  const double w = corner_at(sample_rate), a0 = norm(w);
  // The recommendation leaves its numerator at 1, -2, 1, that is 0.04 dB up; so at every rate.
  const double b = norm(corner_at(48000)) / a0;
  k.high_pass = {
      .b0 = b, .b1 = -2 * b, .b2 = b, .a1 = 2 * (w * w - 1) / a0, .a2 = (1 - w / q + w * w) / a0};
  k.hop = std::max<int64_t>(1, std::lround(0.1 * sample_rate));
  k.warm_up = k.hop;
  return k;
}

double loudness_of_clip(const float* in, int64_t samples, int sample_rate) {
  const KWeighting k = k_weighting(sample_rate);
  std::vector<double> energies;
  energies.reserve(static_cast<size_t>(samples / k.hop + 1));
  KFilter filter;
  for (int64_t begin = 0; begin < samples; begin += k.hop) {
    double energy = 0;
    for (int64_t t = begin; t < std::min(samples, begin + k.hop); ++t) {
      const double y = filter(k, in[t]);
      energy += y * y;
    }
    energies.push_back(energy);
  }
  return gated_loudness(energies.data(), samples, k.hop);
}

at::Tensor integrated_loudness(const Waves& waves) {
  at::NoGradGuard no_grad;
  check_waves(waves, "integrated_loudness");
  const at::Tensor in = waves.samples.contiguous();
  const at::Tensor out = at::empty({in.size(0)}, in.options().dtype(at::kDouble));
#ifdef TANDEM_WITH_CUDA
  if (in.is_cuda()) {
    const int64_t hop = k_weighting(waves.sample_rate).hop;
    const at::Tensor energies = at::empty({in.size(0), in.size(1) / hop + 1}, out.options());
    loudness_on_device(in, row_lengths(waves.lengths, in.device()), waves.sample_rate, energies,
                       out);
    return out;
  }
#endif
  const float* source = in.const_data_ptr<float>();
  double* target = out.mutable_data_ptr<double>();
  at::parallel_for(0, in.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      target[row] = loudness_of_clip(source + row * in.size(1),
                                     waves.lengths[static_cast<size_t>(row)], waves.sample_rate);
  });
  return out;
}

Waves normalise_loudness(const Waves& waves, double target_lufs, double peak_limit) {
  at::NoGradGuard no_grad;
  check_waves(waves, "normalise_loudness");
  const at::Tensor in = waves.samples.contiguous();
  Waves out{.samples = in, .lengths = waves.lengths, .sample_rate = waves.sample_rate};
  if (in.numel() == 0) return out;
  if (!in.is_cpu()) {
    const at::Tensor loudness = integrated_loudness(waves);
    at::Tensor gain = at::pow(10.0, (target_lufs - loudness) / 20)
                          .masked_fill_(at::isfinite(loudness).logical_not_(), 1.0);
    if (peak_limit > 0) gain = at::minimum(gain, peak_limit / in.abs().amax(1).to(at::kDouble));
    out.samples = in * gain.to(at::kFloat).unsqueeze(1);
    return out;
  }
  out.samples = at::zeros_like(in);
  const float* source = in.const_data_ptr<float>();
  float* target = out.samples.mutable_data_ptr<float>();
  at::parallel_for(0, in.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t samples = waves.lengths[static_cast<size_t>(row)];
      const float* from = source + row * in.size(1);
      const auto gain = static_cast<float>(
          gain_of_clip(from, samples, waves.sample_rate, target_lufs, peak_limit));
      for (int64_t t = 0; t < samples; ++t) target[row * in.size(1) + t] = from[t] * gain;
    }
  });
  return out;
}

}  // namespace tandem
