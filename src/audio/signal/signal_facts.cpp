#include "audio/signal/signal_facts.h"

#include <algorithm>
#include <cmath>

#include "audio/signal/loudness.h"
#include "audio/signal/resample.h"

namespace tandem {
namespace {

using Channels = std::vector<std::vector<float>>;

double largest(const std::vector<float>& samples) {
  float peak = 0;
  for (const float x : samples) peak = std::max(peak, std::abs(x));
  return peak;
}

double true_peak_of(const std::vector<float>& samples, int rate) {
  std::vector<float> fine(
      static_cast<size_t>(resampled_length(static_cast<int64_t>(samples.size()), rate, 4 * rate)));
  resample_clip(samples.data(), static_cast<int64_t>(samples.size()), rate, 4 * rate, fine.data());
  return std::max(largest(samples), largest(fine));
}

// All channels weigh the same, as front channels do in the recommendation: their energies add up.
double loudness_of(const Channels& channels, int rate) {
  const KWeighting k = k_weighting(rate);
  const auto samples = static_cast<int64_t>(channels[0].size());
  std::vector<double> energies(static_cast<size_t>(samples / k.hop + 1));
  for (const std::vector<float>& channel : channels) {
    KFilter filter;
    for (size_t i = 0; i < channel.size(); ++i) {
      const double y = filter(k, channel[i]);
      energies[i / static_cast<size_t>(k.hop)] += y * y;
    }
  }
  return gated_loudness(energies.data(), samples, k.hop);
}

double silence_of(const Channels& channels, int rate) {
  constexpr double threshold = 1e-6;  // -60 dBFS, squared
  const size_t window = std::max<size_t>(1, static_cast<size_t>(rate / 20));
  const size_t samples = channels[0].size();
  size_t windows = 0, silent = 0;
  for (size_t begin = 0; begin < samples; begin += window, ++windows) {
    const size_t end = std::min(samples, begin + window);
    double energy = 0;
    for (const std::vector<float>& channel : channels)
      for (size_t i = begin; i < end; ++i) energy += static_cast<double>(channel[i]) * channel[i];
    silent += energy < threshold * static_cast<double>((end - begin) * channels.size());
  }
  return static_cast<double>(silent) / static_cast<double>(windows);
}

}  // namespace

SignalFacts measure_signal(const Channels& given, int sample_rate) {
  SignalFacts facts;
  if (given.empty() || given[0].empty()) return facts;
  constexpr float full = 1 - 0x1p-15F;
  Channels channels = given;
  double energy = 0, clipped = 0;
  for (std::vector<float>& channel : channels) {
    double sum = 0;
    for (float& x : channel) {
      if (!std::isfinite(x)) {
        ++facts.not_finite;
        x = 0;
      }
      sum += x;
      energy += static_cast<double>(x) * x;
      clipped += std::abs(x) >= full;
    }
    const double mean = sum / static_cast<double>(channel.size());
    if (std::abs(mean) > std::abs(facts.offset)) facts.offset = mean;
    facts.peak = std::max(facts.peak, largest(channel));
    facts.true_peak = std::max(facts.true_peak, true_peak_of(channel, sample_rate));
  }
  const auto all = static_cast<double>(channels.size() * channels[0].size());
  facts.full_scale = clipped / all;
  facts.rms = std::sqrt(energy / all);
  facts.silence = silence_of(channels, sample_rate);
  facts.loudness = loudness_of(channels, sample_rate);
  return facts;
}

}  // namespace tandem
