#include "audio/signal/loudness.h"

#include "audio/signal/clips.h"

namespace tandem::tests {
namespace {

double loudness_of(const at::Tensor& wave, int rate) {
  return integrated_loudness(batch_of({wave}, rate))[0].item<double>();
}

at::Tensor tone(double amplitude, double seconds, int rate) {
  const auto samples = static_cast<int64_t>(seconds * rate);
  return (amplitude *
          at::sin(at::arange(samples, at::kDouble) * (2 * std::numbers::pi * 997 / rate)))
      .to(at::kFloat);
}

}  // namespace

TEST(Loudness, TheFiltersAt48kHzAreTheRecommendations) {
  const KWeighting k = k_weighting(48000);
  EXPECT_NEAR(k.shelf.b0, 1.53512485958697, 1e-9);  // BS.1770-4, tables 1 and 2
  EXPECT_NEAR(k.shelf.b1, -2.69169618940638, 1e-9);
  EXPECT_NEAR(k.shelf.b2, 1.19839281085285, 1e-9);
  EXPECT_NEAR(k.shelf.a1, -1.69065929318241, 1e-9);
  EXPECT_NEAR(k.shelf.a2, 0.73248077421585, 1e-9);
  EXPECT_NEAR(k.high_pass.b0, 1.0, 1e-12);
  EXPECT_NEAR(k.high_pass.b1, -2.0, 1e-12);
  EXPECT_NEAR(k.high_pass.a1, -1.99004745483398, 1e-9);
  EXPECT_NEAR(k.high_pass.a2, 0.99007225036621, 1e-9);
}

// The recommendation: 0 dBFS at 997 Hz in one channel reads -3.01 LUFS.
TEST(Loudness, AFullScaleToneReadsMinusThree) {
  for (const int rate : {44100, 48000, 96000, 192000})
    EXPECT_NEAR(loudness_of(tone(1.0, 3, rate), rate), -3.01, 0.02) << rate;
  // At low rates the bilinear transform bends the shelf, as in the judges' filters.
  for (const int rate : {16000, 22050})
    EXPECT_NEAR(loudness_of(tone(1.0, 3, rate), rate), -3.01, 0.05) << rate;
  EXPECT_NEAR(loudness_of(tone(0.1, 3, 48000), 48000), -23.01, 0.02);
}

TEST(Loudness, AgreesWithTorchaudioAndPyloudnorm) {
  const at::Tensor expected = fixture("loudness").view({-1, 2});
  int64_t place = 0;
  for (const int rate : {8000, 16000, 22050, 48000}) {
    const double ours = loudness_of(clip(4 * rate + 123, rate, 3, true), rate);
    for (int64_t judge = 0; judge < 2; ++judge)
      EXPECT_NEAR(ours, expected[place][judge].item<double>(), 0.1) << rate;
    ++place;
  }
}

TEST(Loudness, QuietPartsAreGatedOut) {
  const at::Tensor loud = tone(0.5, 4, 16000), quiet = tone(0.01, 8, 16000);
  EXPECT_NEAR(loudness_of(at::cat({loud, quiet}), 16000), loudness_of(loud, 16000), 0.4);
}

TEST(Loudness, AShortClipIsOneBlock) {
  EXPECT_NEAR(loudness_of(tone(1.0, 0.399, 48000), 48000), -3.01, 0.1);
  EXPECT_NEAR(loudness_of(tone(1.0, 0.05, 48000), 48000), -3.01, 0.5);
}

TEST(Loudness, SilenceHasNone) {
  EXPECT_EQ(loudness_of(at::zeros({40'000}), 16000), -HUGE_VAL);
  EXPECT_EQ(loudness_of(at::zeros({100}), 16000), -HUGE_VAL);
  EXPECT_EQ(loudness_of(at::zeros({0}), 16000), -HUGE_VAL);
  EXPECT_EQ(loudness_of(tone(1e-5, 2, 16000), 16000), -HUGE_VAL);
}

// What the device does: each hop's filters start from rest one hop earlier.
TEST(Loudness, TheWarmUpForgetsTheStart) {
  for (const int rate : {8000, 22050, 48000}) {
    const KWeighting k = k_weighting(rate);
    KFilter filter;
    double rest = std::abs(filter(k, 1.0)), tail = 0;
    for (int64_t t = 1; t < k.warm_up + k.hop; ++t) {
      const double y = std::abs(filter(k, 0.0));
      (t < k.warm_up ? rest : tail) += y;
    }
    EXPECT_LT(tail / rest, 1e-8) << rate;
  }
}

TEST(Loudness, NormalisingReachesTheTarget) {
  const at::Tensor wave = clip(40'000, 16000);
  const Waves out = normalise_loudness(batch_of({wave, wave * 0.01}, 16000), -23, 1.0);
  for (size_t row = 0; row < 2; ++row) EXPECT_NEAR(loudness_of(row_of(out, row), 16000), -23, 0.01);
}

TEST(Loudness, NormalisingStopsAtThePeakLimit) {
  const at::Tensor wave = clip(40'000, 16000);
  const Waves limited = normalise_loudness(batch_of({wave}, 16000), 0, 0.5);
  EXPECT_NEAR(limited.samples.abs().max().item<double>(), 0.5, 1e-6);
  const Waves free = normalise_loudness(batch_of({wave}, 16000), 0, 0);
  EXPECT_GT(free.samples.abs().max().item<double>(), 1.0);
}

TEST(Loudness, SilenceStaysAsItIs) {
  const Waves out =
      normalise_loudness(batch_of({at::zeros({9000}), at::zeros({0})}, 16000), -23, 1);
  EXPECT_EQ(out.samples.count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(out.lengths, (std::vector<int64_t>{9000, 0}));
}

TEST(Loudness, ARowIsWhatItIsAlone) {
  expect_rows_alone(ragged_clips(8000), 8000,
                    [](const Waves& waves, size_t) { return normalise_loudness(waves, -20, 0.9); });
}

}  // namespace tandem::tests
