#include "audio/signal/lanes.h"

#include <cmath>
#include <random>

#include "audio/signal/clips.h"
#include "audio/signal/mel_tables.h"
#include "audio/signal/resample.h"

namespace tandem::tests {

TEST(Lanes, TheFastestIsAmongThoseAvailable) {
  const auto all = available_lanes();
  EXPECT_EQ(all.front()->width, 4);
  EXPECT_EQ(&lanes(), all.back());
}

TEST(Lanes, LogarithmsAreRightToTwoUnits) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-69, 60);
  for (const Lanes* simd : available_lanes()) {
    std::vector<float> in(static_cast<size_t>(simd->width)), out(in);
    double worst = 0;
    for (int round = 0; round < 40000; ++round) {
      for (float& x : in)
        x = static_cast<float>(round % 2 ? std::exp(exponent(random))
                                         : std::exp(exponent(random) / 100));
      simd->log(in.data(), out.data());
      for (size_t i = 0; i < in.size(); ++i) {
        const double exact = std::log(static_cast<double>(in[i]));
        const float near = static_cast<float>(exact);
        const double unit = std::nextafter(std::abs(near), HUGE_VALF) - std::abs(near);
        worst = std::max(worst, std::abs(out[i] - exact) / unit);
      }
    }
    EXPECT_LE(worst, 2.0) << simd->name;
  }
}

TEST(Lanes, LogarithmsKeepWhatIsNotANumber) {
  for (const Lanes* simd : available_lanes()) {
    std::vector<float> in(static_cast<size_t>(simd->width), 1.0f), out(in);
    in[1] = NAN;
    in[2] = INFINITY;
    simd->log(in.data(), out.data());
    EXPECT_EQ(out[0], 0.0f) << simd->name;
    EXPECT_TRUE(std::isnan(out[1])) << simd->name;
    EXPECT_EQ(out[2], INFINITY) << simd->name;
  }
}

// Every size the front ends may ask for, against the definition of the spectrum.
TEST(Lanes, AllAgreeWithAPlainSpectrumAtEverySize) {
  for (const Lanes* simd : available_lanes())
    for (int n_fft = 16; n_fft <= 8192; n_fft *= 2) {
      MelOptions options{.n_fft = n_fft,
                         .hop = n_fft / 4 - (n_fft > 64 ? 3 : 0),
                         .window_length = n_fft - 4,
                         .mels = 8,
                         .power = n_fft % 3 == 1 ? 1 : 2};
      const int64_t samples = 5 * n_fft + 7, frames = mel_frames(samples, options);
      const at::Tensor wave = clip(samples, 22050, 3);
      const auto tables = mel_tables(options, *simd);
      const at::Tensor ours = at::empty({options.mels, frames});
      plain_mel_clip(*tables, wave.const_data_ptr<float>(), samples, frames,
                     ours.mutable_data_ptr<float>(), frames, nullptr);
      const at::Tensor window = at::tensor(tables->window).to(at::kDouble);
      const at::Tensor spectrum = at::stft(wave.to(at::kDouble), n_fft, options.hop, n_fft, window,
                                           true, "reflect", false, true, true)
                                      .abs();
      const at::Tensor mels = at::matmul(mel_filters(options).t().to(at::kDouble),
                                         options.power == 1 ? spectrum : spectrum.square());
      EXPECT_LE(difference(ours.to(at::kDouble), at::log(mels.clamp_min(1e-5))), 1e-4)
          << simd->name << " n_fft " << n_fft;
    }
}

TEST(Lanes, AllResampleAlike) {
  const auto table = resample_table(16000, 22050);
  const at::Tensor wave = clip(2000, 16000);
  const int64_t from = 500, to = 2003;
  const auto run = [&](const Lanes& simd) {
    at::Tensor out = at::zeros({to});
    simd.resample(table->coefficients.data(), table->first.data(), table->taps, table->stride,
                  table->phases, wave.const_data_ptr<float>(), from, to,
                  out.mutable_data_ptr<float>());
    return out;
  };
  const at::Tensor plain = run(*available_lanes().front());
  EXPECT_EQ(plain.slice(0, 0, from).count_nonzero().item<int64_t>(), 0);
  EXPECT_GT(plain.slice(0, from).abs().max().item<float>(), 0.2f);
  for (const Lanes* simd : available_lanes()) EXPECT_LE(difference(run(*simd), plain), 1e-6);
}

}  // namespace tandem::tests
