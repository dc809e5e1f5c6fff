// Signal work on CUDA against the CPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "audio/signal/augment.h"
#include "audio/signal/clips.h"
#include "audio/signal/loudness.h"
#include "audio/signal/mel.h"
#include "audio/signal/preemphasis.h"
#include "audio/signal/resample.h"
#include "audio/signal/slice.h"
#include "audio/signal/trim.h"
#include "gpu/in_child.h"

namespace tandem::tests {
namespace {

Waves on_gpu(const Waves& waves) {
  return {waves.samples.to(at::kCUDA), waves.lengths, waves.sample_rate};
}

void expect_same(const Waves& gpu, const Waves& cpu, double allowed) {
  ASSERT_TRUE(gpu.samples.is_cuda());
  EXPECT_EQ(gpu.lengths, cpu.lengths);
  EXPECT_EQ(gpu.sample_rate, cpu.sample_rate);
  EXPECT_LE(difference(gpu.samples.cpu(), cpu.samples), allowed);
}

}  // namespace

TEST(GpuSignal, ResamplesAsTheCpuDoes) {
  IN_CHILD({
    for (const auto& [from, to] : {std::pair{16000, 22050}, {48000, 22050}, {192000, 8000}}) {
      const Waves waves = batch_of(ragged_clips(from), from, 50);
      expect_same(resample(on_gpu(waves), to), resample(waves, to), 1e-6);
    }
  });
}

TEST(GpuSignal, MelsAsTheCpuDoes) {
  IN_CHILD({
    for (const std::string_view name : mel_names()) {
      const MelOptions options = *find_mel(name);
      const Waves waves = batch_of(ragged_clips(options.sample_rate), options.sample_rate, 50);
      const at::Tensor stats = at::linspace(1, 3, options.mels);
      for (const int64_t frames : {-1, 10, 100})
        EXPECT_LE(difference(log_mel(on_gpu(waves), options, frames, stats).cpu(),
                             log_mel(waves, options, frames, stats)),
                  options.standardise ? 5e-4 : 1e-4)
            << name;
    }
  });
}

TEST(GpuSignal, MelsDoNotFeelTensorFloat32) {
  IN_CHILD({
    const bool before = at::globalContext().allowTF32CuBLAS();
    const Waves waves = batch_of({clip(40'000, 22050)}, 22050);
    at::globalContext().setAllowTF32CuBLAS(true);
    const at::Tensor mels = log_mel(on_gpu(waves), mel_default()).cpu();
    at::globalContext().setAllowTF32CuBLAS(before);
    EXPECT_LE(difference(mels, log_mel(waves, mel_default())), 1e-4);
  });
}

TEST(GpuSignal, MeasuresLoudnessAsTheCpuDoes) {
  IN_CHILD({
    for (const int rate : {8000, 22050, 48000}) {
      const Waves waves = batch_of(
          {clip(5 * rate, rate, 1, true), clip(rate / 4, rate), at::zeros({rate}), clip(0, rate)},
          rate);
      const at::Tensor gpu = integrated_loudness(on_gpu(waves)).cpu(),
                       cpu = integrated_loudness(waves);
      for (int64_t row = 0; row < 2; ++row)
        EXPECT_NEAR(gpu[row].item<double>(), cpu[row].item<double>(), 1e-6) << rate;
      for (int64_t row = 2; row < 4; ++row) EXPECT_EQ(gpu[row].item<double>(), -HUGE_VAL);
      expect_same(normalise_loudness(on_gpu(waves), -23, 0.9), normalise_loudness(waves, -23, 0.9),
                  1e-5);
    }
  });
}

TEST(GpuSignal, TrimsAsTheCpuDoes) {
  IN_CHILD({
    std::vector<at::Tensor> clips = ragged_clips(22050);
    clips.push_back(at::cat({at::zeros({5000}), clip(3000, 22050), 1e-4 * clip(4000, 22050)}));
    clips.push_back(at::zeros({700}));
    const Waves waves = batch_of(clips, 22050);
    const TrimOptions options{.top_db = 40, .frame = 512, .hop = 128, .margin = 60};
    const Trimmed gpu = trim_silence(on_gpu(waves), options), cpu = trim_silence(waves, options);
    EXPECT_EQ(gpu.starts, cpu.starts);
    EXPECT_EQ(gpu.silent, cpu.silent);
    expect_same(gpu.waves, cpu.waves, 0);
  });
}

TEST(GpuSignal, AugmentsAsTheCpuDoes) {
  IN_CHILD({
    const Waves waves = batch_of(ragged_clips(16000), 16000, 50);
    const std::vector<double> ratios(waves.lengths.size(), 10.0);
    const std::vector<uint64_t> ids{1, 2, 3, 4, 5, 6, 7};
    expect_same(add_noise(on_gpu(waves), ratios, 3, ids), add_noise(waves, ratios, 3, ids), 1e-6);
    expect_same(preemphasise(on_gpu(waves)), preemphasise(waves), 1e-7);
    expect_same(random_slice(on_gpu(waves), 500, 3, ids).waves,
                random_slice(waves, 500, 3, ids).waves, 0);
    // Phases are summed over all frames, so rounding shows: a few thousandths.
    const std::vector<double> steps{2, -3, 1, 0, 0, 4, -1};
    expect_same(pitch_shift(on_gpu(waves), steps), pitch_shift(waves, steps), 2e-2);
  });
}

}  // namespace tandem::tests
