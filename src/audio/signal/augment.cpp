#include "audio/signal/augment.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "audio/signal/device_kernels.h"
#include "audio/signal/noise_draw.h"
#include "audio/signal/ragged.h"
#include "audio/signal/resample.h"
#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr int64_t n_fft = 512, hop = 128;
constexpr double largest_shift = 48;  // semitones

void check_count(const char* work, size_t rows, size_t values) {
  if (rows != values)
    throw Error(ErrorKind::internal,
                fmt::format("{} was given {} values for {} rows", work, values, rows));
}

// Sums in the order of time, whatever the width of the batch and the number of threads.
void add_noise_to_clip(const float* in, int64_t samples, double snr_db, uint64_t key, float* out) {
  double signal = 0, noise = 0;
  for (int64_t t = 0; t < samples; ++t) {
    out[t] = noise_at(key, static_cast<uint64_t>(t));
    signal += static_cast<double>(in[t]) * in[t];
    noise += static_cast<double>(out[t]) * out[t];
  }
  if (noise == 0) noise = 1;
  const auto gain = static_cast<float>(std::sqrt(signal * std::pow(10.0, snr_db / -10) / noise));
  for (int64_t t = 0; t < samples; ++t) out[t] = in[t] + out[t] * gain;
}

#ifdef TANDEM_WITH_CUDA
at::Tensor with_noise_on_device(const Waves& waves, const std::vector<double>& snr_db,
                                const std::vector<int64_t>& keys) {
  const at::Tensor& in = waves.samples;
  const at::Tensor noise = at::zeros(in.sizes(), in.options());
  noise_on_device(row_lengths(keys, in.device()), row_lengths(waves.lengths, in.device()), noise);
  const at::Tensor ratio =
      at::pow(10.0, at::tensor(snr_db, at::kDouble) / -10).to(in.device(), true);
  const auto energy = [](const at::Tensor& x) { return x.to(at::kDouble).square().sum(1); };
  const at::Tensor gain = at::sqrt(energy(in) * ratio / energy(noise).clamp_min(1e-30));
  return in + noise * gain.to(at::kFloat).unsqueeze(1);
}
#endif

// A row [T] with n_fft / 2 samples reflected at either end.
at::Tensor padded(const at::Tensor& row) {
  const int64_t length = row.size(0), side = n_fft / 2;
  if (length > side) return at::reflection_pad1d(row.unsqueeze(0), {side, side}).squeeze(0);
  std::vector<int64_t> places;
  for (int64_t t = -side; t < length + side; ++t) places.push_back(reflected(t, length));
  return row.index_select(0, row_lengths(places, row.device()));
}

// `spectrum` [bins, frames] at `rate` times the speed, each bin's phase going on at its own pace.
at::Tensor stretched(const at::Tensor& spectrum, double rate) {
  const double turn = 2 * std::numbers::pi;
  const auto real = spectrum.options().dtype(at::kFloat);
  const at::Tensor advance =
      at::linspace(0, std::numbers::pi * hop, spectrum.size(0), real).unsqueeze(1);
  const at::Tensor steps = at::arange(0, spectrum.size(1), rate, real);
  const at::Tensor fraction = steps.remainder(1.0);
  const at::Tensor wide = at::constant_pad_nd(spectrum, {0, 2});
  const at::Tensor now = wide.index_select(1, steps.to(at::kLong));
  const at::Tensor next = wide.index_select(1, (steps + 1).to(at::kLong));
  at::Tensor phase = next.angle() - now.angle() - advance;
  phase = phase - turn * at::round(phase / turn) + advance;
  phase = at::cat({spectrum.slice(1, 0, 1).angle(), phase.slice(1, 0, -1)}, 1).cumsum(1);
  return at::polar(fraction * next.abs() + (1 - fraction) * now.abs(), phase);
}

at::Tensor shifted(const at::Tensor& row, int sample_rate, double semitones) {
  const double rate = std::pow(2.0, -semitones / 12);
  const int64_t length = row.size(0);
  const at::Tensor window = at::hann_window(n_fft, row.options());
  const at::Tensor spectrum = at::stft(padded(row), n_fft, hop, n_fft, window, /*center=*/false,
                                       "reflect", false, true, /*return_complex=*/true);
  const auto slow_length = static_cast<int64_t>(std::nearbyint(static_cast<double>(length) / rate));
  const at::Tensor slow = at::istft(stretched(spectrum, rate), n_fft, hop, n_fft, window,
                                    /*center=*/true, false, true, slow_length);
  Waves one{.samples = slow.unsqueeze(0), .lengths = {slow_length}};
  one.sample_rate = static_cast<int>(sample_rate / rate);
  return resample(one, sample_rate).samples.squeeze(0);
}

}  // namespace

Waves add_noise(const Waves& waves, const std::vector<double>& snr_db, uint64_t seed,
                const std::vector<uint64_t>& ids, uint64_t draw) {
  at::NoGradGuard no_grad;
  check_waves(waves, "add_noise");
  check_count("add_noise", waves.lengths.size(), snr_db.size());
  check_count("add_noise", waves.lengths.size(), ids.size());
  std::vector<int64_t> keys;
  for (const uint64_t id : ids)
    keys.push_back(static_cast<int64_t>(counted_draw(seed, "noise", id, draw)));
  Waves out{.lengths = waves.lengths, .sample_rate = waves.sample_rate};
#ifdef TANDEM_WITH_CUDA
  if (waves.samples.is_cuda()) {
    out.samples = with_noise_on_device(waves, snr_db, keys);
    return out;
  }
#endif
  const at::Tensor in = waves.samples.contiguous();
  const int64_t width = in.size(1);
  out.samples = at::zeros_like(in);
  const float* from = in.const_data_ptr<float>();
  float* to = out.samples.mutable_data_ptr<float>();
  at::parallel_for(0, in.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto r = static_cast<size_t>(row);
      add_noise_to_clip(from + row * width, waves.lengths[r], snr_db[r],
                        static_cast<uint64_t>(keys[r]), to + row * width);
    }
  });
  return out;
}

Waves pitch_shift(const Waves& waves, const std::vector<double>& semitones) {
  at::NoGradGuard no_grad;
  check_waves(waves, "pitch_shift");
  check_count("pitch_shift", waves.lengths.size(), semitones.size());
  Waves out{
      .samples = waves.samples.clone(), .lengths = waves.lengths, .sample_rate = waves.sample_rate};
  for (size_t row = 0; row < semitones.size(); ++row) {
    if (!(std::abs(semitones[row]) <= largest_shift))
      throw Error(ErrorKind::config, fmt::format("the pitch cannot be shifted by {} semitones: at "
                                                 "most {} up or down were expected",
                                                 semitones[row], largest_shift));
    const int64_t length = waves.lengths[row];
    if (semitones[row] == 0 || length == 0) continue;
    const at::Tensor place = out.samples[static_cast<int64_t>(row)].slice(0, 0, length);
    const at::Tensor moved = shifted(waves.samples[static_cast<int64_t>(row)].slice(0, 0, length),
                                     waves.sample_rate, semitones[row]);
    const int64_t kept = std::min(length, moved.size(0));
    place.zero_();
    place.slice(0, 0, kept).copy_(moved.slice(0, 0, kept));
  }
  return out;
}

}  // namespace tandem
