#include "train/stages/mel_distance.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "audio/signal/lanes.h"
#include "audio/signal/mel_tables.h"
#include "audio/signal/resample.h"

namespace tandem {
namespace {

// The root of an empty bin has no slope; HiFi-GAN lifts powers by as much.
constexpr double least_power = 1e-9;
constexpr double standardise_eps = 1e-5;

// `before` and `behind` samples mirrored at the ends, as slices: their backward pass adds in a
// fixed order.
at::Tensor reflect(const at::Tensor& x, int64_t before, int64_t behind) {
  std::vector<at::Tensor> parts;
  if (before > 0) parts.push_back(x.narrow(1, 1, before).flip(1));
  parts.push_back(x);
  if (behind > 0) parts.push_back(x.narrow(1, x.size(1) - 1 - behind, behind).flip(1));
  return at::cat(parts, 1);
}

// Windows of `length` every `hop` samples, `count` of them: [B, count, length]. Made of blocks that
// divide both, so that no index is gathered.
at::Tensor cut(const at::Tensor& x, int64_t length, int64_t hop, int64_t count) {
  const int64_t block = std::gcd(length, hop), step = hop / block, blocks = length / block;
  const int64_t needed = ((count - 1) * step + blocks) * block;
  const at::Tensor in = x.size(1) >= needed ? x.narrow(1, 0, needed)
                                            : at::constant_pad_nd(x, {0, needed - x.size(1)});
  const at::Tensor rows = in.reshape({x.size(0), -1, block});
  std::vector<at::Tensor> parts;
  for (int64_t k = 0; k < blocks; ++k)
    parts.push_back(rows.slice(1, k, k + (count - 1) * step + 1, step));
  return at::cat(parts, 2);
}

at::Tensor preemphasise(const at::Tensor& x, double coefficient) {
  return x - coefficient * at::cat({x.narrow(1, 1, 1), x.narrow(1, 0, x.size(1) - 1)}, 1);
}

}  // namespace

MelOptions mel_of_decoder(int sample_rate) {
  return {.sample_rate = sample_rate, .f_max = sample_rate / 2.0};
}

at::Tensor power_spectrum(const at::Tensor& waves, const at::Tensor& window, int64_t n_fft,
                          int64_t hop) {
  const int64_t frames = 1 + waves.size(1) / hop, length = window.size(0);
  // The window stands in the middle of n_fft: what is outside it does not count.
  const int64_t before = n_fft / 2 - (n_fft - length) / 2;
  const int64_t behind = std::max<int64_t>(0, (frames - 1) * hop + length - before - waves.size(1));
  const at::Tensor in = cut(reflect(waves, before, behind), length, hop, frames) * window;
  const at::Tensor spectrum = at::view_as_real(at::fft_rfft(in, n_fft));
  return spectrum.square().sum(-1);
}

MelLayer::MelLayer(const MelOptions& options, const at::Device& device) : options_(options) {
  const auto tables = mel_tables(options, lanes());
  const int64_t left = (options.n_fft - options.window_length) / 2;
  window_ = at::tensor(tables->window).narrow(0, left, options.window_length).to(device);
  filters_ = mel_filters(options).to(device);
}

at::Tensor MelLayer::operator()(const at::Tensor& waves) const {
  const at::Tensor in =
      options_.preemphasis == 0 ? waves : preemphasise(waves, options_.preemphasis);
  const at::Tensor window = window_.to(in.scalar_type());
  at::Tensor power = power_spectrum(in, window, options_.n_fft, options_.hop);
  if (options_.power == 1) power = (power + least_power).sqrt();
  at::Tensor mels = at::matmul(power, filters_.to(in.scalar_type()));
  mels = (mels.clamp_min(options_.clamp) + options_.add).log().transpose(1, 2);
  if (!options_.standardise) return mels;
  const at::Tensor centred = mels - mels.mean(2, true);
  return centred / (centred.square().mean(2, true) + standardise_eps).sqrt();
}

ResampleLayer::ResampleLayer(int from, int to, const at::Device& device) : from_(from), to_(to) {
  if (from == to) return;
  const auto table = resample_table(from, to);
  stride_ = table->stride;
  before_ = -*std::min_element(table->first.begin(), table->first.end());
  const int64_t last = *std::max_element(table->first.begin(), table->first.end());
  kernels_ = at::zeros({table->phases, 1, last + before_ + table->taps});
  for (int64_t p = 0; p < table->phases; ++p) {
    const auto row = static_cast<size_t>(p);
    for (int64_t k = 0; k < table->taps; ++k)
      kernels_.data_ptr<float>()[p * kernels_.size(2) + before_ + table->first[row] + k] =
          table->coefficients[row * static_cast<size_t>(table->taps) + static_cast<size_t>(k)];
  }
  kernels_ = kernels_.to(device);
}

at::Tensor ResampleLayer::operator()(const at::Tensor& waves) const {
  if (from_ == to_) return waves;
  const int64_t out = resampled_length(waves.size(1), from_, to_);
  const int64_t phases = kernels_.size(0), turns = (out + phases - 1) / phases;
  const int64_t behind = (turns - 1) * stride_ + kernels_.size(2) - before_ - waves.size(1);
  const at::Tensor in = at::constant_pad_nd(waves, {before_, std::max<int64_t>(0, behind)});
  return at::conv1d(in.unsqueeze(1), kernels_.to(waves.scalar_type()), {}, stride_)
      .narrow(2, 0, turns)
      .transpose(1, 2)
      .flatten(1)
      .narrow(1, 0, out);
}

at::Tensor mean_of_valid(const at::Tensor& values, const at::Tensor& valid,
                         int64_t samples_a_place) {
  const int64_t places = values.size(1);
  const at::Tensor count = at::div(valid + (samples_a_place - 1), samples_a_place, "floor")
                               .clamp(1, places)
                               .unsqueeze(1);
  const at::Tensor counts = at::arange(places, valid.options()).unsqueeze(0) < count;
  return values.masked_fill(counts.logical_not(), 0).sum(1) / count.squeeze(1);
}

at::Tensor mel_distance(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                        int64_t hop) {
  return mean_of_valid((a - b).abs().mean(1), valid, hop);
}

at::Tensor cepstral_distortion(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                               int64_t hop) {
  constexpr int64_t coefficients = 13;
  const int64_t mels = a.size(1);
  const at::Tensor order = at::arange(1, coefficients + 1, a.options()).unsqueeze(1);
  const at::Tensor place = (at::arange(mels, a.options()) + 0.5).unsqueeze(0);
  const double width = static_cast<double>(mels);
  // log |H| is the sum of c_m cos(m w): c_m is twice the mean of log |H| cos(m w).
  const at::Tensor transform = (order * place * (std::numbers::pi / width)).cos() * (2 / width);
  const at::Tensor apart = at::matmul(transform, a - b).square().sum(1);  // [B, frames]
  return mean_of_valid((2 * apart).sqrt(), valid, hop) * (10 / std::numbers::ln10);
}

SpectralDistance::SpectralDistance(const at::Device& device) {
  for (const auto& [n_fft, hop, length] :
       {std::array<int64_t, 3>{1024, 120, 600}, {2048, 240, 1200}, {512, 50, 240}})
    resolutions_.push_back({n_fft, hop, at::hann_window(length, at::kFloat).to(device)});
}

at::Tensor SpectralDistance::operator()(const at::Tensor& a, const at::Tensor& b,
                                        const at::Tensor& valid) const {
  at::Tensor sum;
  for (const Resolution& one : resolutions_) {
    const auto magnitudes = [&](const at::Tensor& waves) {
      return power_spectrum(waves, one.window, one.n_fft, one.hop).clamp_min(1e-8).sqrt();
    };
    const at::Tensor x = magnitudes(a), y = magnitudes(b);
    const auto mean = [&](const at::Tensor& values) {
      return mean_of_valid(values.mean(2), valid, one.hop);
    };
    // The root of 0 has no slope; rows of silence alike are as near as can be.
    const at::Tensor apart = mean((y - x).square()) / mean(y.square()), differs = apart > 0;
    const at::Tensor convergence = at::where(differs, apart, 1).sqrt() * differs;
    const at::Tensor logs = mean((y.log() - x.log()).abs());
    sum = sum.defined() ? sum + convergence + logs : convergence + logs;
  }
  return sum / static_cast<double>(resolutions_.size());
}

}  // namespace tandem
