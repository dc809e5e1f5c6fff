#include "audio/signal/signal_facts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "audio/signal/loudness.h"

namespace tandem {
namespace {

constexpr int facts_rate = 32000;

std::vector<float> tone(double amplitude, double hertz, double seconds, double phase = 0) {
  std::vector<float> samples(static_cast<size_t>(seconds * facts_rate));
  for (size_t i = 0; i < samples.size(); ++i) {
    const double angle = 2 * std::numbers::pi * hertz * static_cast<double>(i) / facts_rate;
    samples[i] = static_cast<float>(amplitude * std::sin(angle + phase));
  }
  return samples;
}

}  // namespace

TEST(SignalFacts, OfATone) {
  const std::vector<float> sound = tone(0.5, 440, 2);
  const SignalFacts facts = measure_signal({sound}, facts_rate);
  EXPECT_NEAR(facts.peak, 0.5, 1e-4);
  EXPECT_NEAR(facts.rms, 0.5 / std::numbers::sqrt2, 1e-4);
  EXPECT_NEAR(facts.offset, 0, 1e-4);
  EXPECT_EQ(facts.silence, 0);
  EXPECT_EQ(facts.full_scale, 0);
  EXPECT_EQ(facts.not_finite, 0);
  EXPECT_NEAR(facts.loudness,
              loudness_of_clip(sound.data(), static_cast<int64_t>(sound.size()), facts_rate), 1e-9);
}

// Two equal channels have twice the energy: 3.01 LU more.
TEST(SignalFacts, ChannelsAddUpToTheLoudness) {
  const std::vector<float> sound = tone(0.25, 1000, 1);
  const double one = measure_signal({sound}, facts_rate).loudness;
  const double two = measure_signal({sound, sound}, facts_rate).loudness;
  EXPECT_NEAR(two - one, 10 * std::log10(2.0), 1e-9);
}

// Samples of a tone at a quarter of the rate, 45 degrees off, miss its crests by 3 dB.
TEST(SignalFacts, TruePeakIsSeenBetweenSamples) {
  const SignalFacts facts =
      measure_signal({tone(0.9, facts_rate / 4.0, 0.5, std::numbers::pi / 4)}, facts_rate);
  EXPECT_NEAR(facts.peak, 0.9 / std::numbers::sqrt2, 1e-4);
  EXPECT_NEAR(facts.true_peak, 0.9, 0.03);
}

TEST(SignalFacts, SeesWhatIsWrongInOneChannelAlone) {
  const std::vector<float> fine = tone(0.3, 440, 1);
  std::vector<float> clipped = tone(4, 440, 1), shifted = fine;
  for (float& x : clipped) x = std::clamp(x, -1.0F, 1.0F);
  for (float& x : shifted) x -= 0.25F;
  const double share = measure_signal({fine, clipped}, facts_rate).full_scale;
  EXPECT_NEAR(share, 0.42, 0.02);  // arc cosine of 1/4, over both channels
  EXPECT_NEAR(measure_signal({fine, shifted}, facts_rate).offset, -0.25, 1e-3);
}

TEST(SignalFacts, CountsSilentWindows) {
  std::vector<float> sound = tone(0.5, 440, 1);
  sound.resize(sound.size() * 4);
  EXPECT_NEAR(measure_signal({sound}, facts_rate).silence, 0.75, 1e-9);
  const SignalFacts nothing = measure_signal({std::vector<float>(facts_rate)}, facts_rate);
  EXPECT_EQ(nothing.silence, 1);
  EXPECT_EQ(nothing.loudness, -HUGE_VAL);
}

TEST(SignalFacts, CountsWhatIsNotFiniteAndMeasuresTheRest) {
  std::vector<float> sound = tone(0.5, 440, 1);
  sound[7] = NAN;
  sound[8] = INFINITY;
  const SignalFacts facts = measure_signal({sound}, facts_rate);
  EXPECT_EQ(facts.not_finite, 2);
  EXPECT_NEAR(facts.peak, 0.5, 1e-4);
  EXPECT_TRUE(std::isfinite(facts.loudness));
}

TEST(SignalFacts, OfNothingAreNothing) {
  EXPECT_EQ(measure_signal({}, facts_rate).peak, 0);
  EXPECT_EQ(measure_signal({{}}, facts_rate).peak, 0);
}

}  // namespace tandem
