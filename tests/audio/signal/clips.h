// Clips for the tests of signal work, as tests/parity/signal_reference.py makes them, and what
// tests/parity/make_signal_fixtures.py wrote about them.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <numbers>
#include <string>
#include <vector>

#include "audio/signal/waves.h"
#include "util/counted_random.h"

namespace tandem::tests {

// Two tones in noise; with `gaps` every third half second is quiet.
inline at::Tensor clip(int64_t samples, int rate, uint64_t seed = 0, bool gaps = false) {
  at::Tensor wave = at::empty({samples});
  for (int64_t i = 0; i < samples; ++i) {
    const uint64_t draw = mix_bits(static_cast<uint64_t>(i) + (seed << 32));
    const double noise = static_cast<double>(draw >> 40) / (1 << 23) - 1;
    const double t = 2 * std::numbers::pi * static_cast<double>(i) / rate;
    double x = 0.3 * std::sin(220 * t) + 0.1 * std::sin(3000.5 * t) + 0.05 * noise;
    if (gaps && i / (rate / 2) % 3 == 2) x *= 0.002;
    wave.mutable_data_ptr<float>()[i] = static_cast<float>(x);
  }
  return wave;
}

inline Waves batch_of(const std::vector<at::Tensor>& clips, int rate, int64_t spare = 0) {
  Waves waves{.sample_rate = rate};
  int64_t longest = 0;
  for (const at::Tensor& one : clips) {
    waves.lengths.push_back(one.size(0));
    longest = std::max(longest, one.size(0));
  }
  waves.samples = at::zeros({static_cast<int64_t>(clips.size()), longest + spare});
  for (size_t row = 0; row < clips.size(); ++row)
    waves.samples[static_cast<int64_t>(row)].slice(0, 0, clips[row].size(0)).copy_(clips[row]);
  return waves;
}

// Clips of many lengths, an empty one and one of a single sample among them.
inline std::vector<at::Tensor> ragged_clips(int rate) {
  std::vector<at::Tensor> clips;
  for (const int64_t samples : {4001, 1, 9999, 0, 2, 700, 6144})
    clips.push_back(clip(samples, rate, clips.size()));
  return clips;
}

inline at::Tensor row_of(const Waves& waves, size_t row) {
  return waves.samples[static_cast<int64_t>(row)].slice(0, 0, waves.lengths[row]);
}
inline at::Tensor beyond_row(const Waves& waves, size_t row) {
  return waves.samples[static_cast<int64_t>(row)].slice(0, waves.lengths[row]);
}

inline double difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  if (a.sizes() != b.sizes()) return HUGE_VAL;
  return a.numel() == 0 ? 0.0 : (a - b).abs().max().item<double>();
}

// Every row of `work`'s result has the bits it has for the row alone, and zeros behind them.
template <typename Work>  // Waves(const Waves&, size_t first_row)
void expect_rows_alone(const std::vector<at::Tensor>& clips, int rate, const Work& work) {
  const Waves together = work(batch_of(clips, rate, 333), size_t{0});
  for (size_t row = 0; row < clips.size(); ++row) {
    const Waves alone = work(batch_of({clips[row]}, rate), row);
    EXPECT_EQ(together.lengths[row], alone.lengths[0]) << "row " << row;
    EXPECT_TRUE(at::equal(row_of(together, row), row_of(alone, 0))) << "row " << row;
    EXPECT_EQ(beyond_row(together, row).count_nonzero().item<int64_t>(), 0) << "row " << row;
  }
}

inline at::Tensor fixture(const std::string& name) {
  const std::string path =
      std::string(TANDEM_SOURCE_DIR "/tests/audio/signal/fixtures/") + name + ".f32";
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  at::Tensor values = at::empty({static_cast<int64_t>(bytes.size() / 4)});
  std::copy_n(bytes.data(), values.nbytes(), static_cast<char*>(values.mutable_data_ptr()));
  return values;
}

}  // namespace tandem::tests
