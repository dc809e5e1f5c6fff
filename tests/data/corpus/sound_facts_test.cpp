#include "data/corpus/sound_facts.h"

#include <gtest/gtest.h>

#include "data/corpus/corpus_files.h"

namespace tandem {
namespace {

SoundFacts hear(const TestFolder& folder, const std::vector<float>& samples,
                const ListenOptions& options = {}) {
  const std::string path = (folder / "s.wav").string();
  write_wav(path, samples, 1, 16000, SampleFormat::float32);
  return listen({path}, options);
}

AudioFault fault_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const AudioError& error) {
    return error.fault();
  }
  ADD_FAILURE() << "no AudioError";
  return AudioFault::changed;
}

TEST(SoundFacts, MeasureATone) {
  const TestFolder folder;
  const SoundFacts facts = hear(folder, tests::samples_of({.seconds = 2, .size = 0.5f}));
  EXPECT_EQ(facts.frames, 32000);
  EXPECT_EQ(facts.sample_rate, 16000);
  EXPECT_EQ(facts.channels, 1);
  EXPECT_TRUE(facts.decoded);
  EXPECT_NEAR(facts.peak, 0.5, 1e-3);
  EXPECT_NEAR(facts.rms, 20 * std::log10(0.5 / std::sqrt(2)), 0.05);
  EXPECT_NEAR(facts.loudness, facts.rms, 0.05);
  EXPECT_NEAR(facts.dc, 0, 1e-4);
  EXPECT_EQ(facts.silence, 0);
  EXPECT_EQ(facts.clipping, 0);
  EXPECT_NE(facts.fingerprint, 0u);
}

TEST(SoundFacts, TellSilenceFromSpeech) {
  const TestFolder folder;
  std::vector<float> samples = tests::samples_of({.seconds = 2, .size = 0.5f});
  std::fill(samples.begin(), samples.begin() + 8000, 0.001f);
  const SoundFacts facts = hear(folder, samples);
  EXPECT_NEAR(facts.silence, 0.25, 0.011);
  EXPECT_NEAR(facts.loudness, -9.03, 0.05) << "of the spoken part";
  EXPECT_LT(facts.rms, facts.loudness - 1);
  const SoundFacts nothing = hear(folder, std::vector<float>(16000));
  EXPECT_EQ(nothing.silence, 1);
  EXPECT_EQ(nothing.loudness, -120);
  EXPECT_EQ(nothing.peak, 0);
}

TEST(SoundFacts, CountRunsAtFullScaleOnly) {
  const TestFolder folder;
  std::vector<float> samples(1000, 0.1f);
  samples[10] = 1;                                                // a lone peak
  std::fill(samples.begin() + 100, samples.begin() + 150, 1.0f);  // a run
  std::fill(samples.end() - 50, samples.end(), -1.0f);            // one that the end cuts off
  EXPECT_NEAR(hear(folder, samples).clipping, 0.1, 1e-6);
}

TEST(SoundFacts, SeeADcOffset) {
  const TestFolder folder;
  std::vector<float> samples = tests::samples_of({.size = 0.2f});
  for (float& sample : samples) sample += 0.05f;
  EXPECT_NEAR(hear(folder, samples).dc, 0.05, 1e-4);
}

TEST(SoundFacts, FingerprintTheSamplesNotTheFile) {
  const TestFolder folder;
  const std::vector<float> samples = tests::samples_of({});
  const uint64_t whole = hear(folder, samples).fingerprint;
  write_flac((folder / "s.flac").string(), samples, 1, 16000);
  write_wav((folder / "t.wav").string(), samples, 1, 16000, SampleFormat::pcm16);
  const uint64_t flac = listen({(folder / "s.flac").string()}, {}).fingerprint;
  EXPECT_EQ(flac, listen({(folder / "t.wav").string()}, {}).fingerprint);
  EXPECT_NE(whole, flac) << "float samples are not rounded to 16 bit";
  EXPECT_NE(whole, hear(folder, tests::samples_of({.hertz = 221})).fingerprint);
}

TEST(SoundFacts, ReadAPart) {
  const TestFolder folder;
  std::vector<float> samples(48000);
  std::fill(samples.begin() + 16000, samples.begin() + 32000, 0.5f);
  const SoundFacts facts = hear(folder, samples, {.start = 1, .seconds = 1});
  EXPECT_TRUE(facts.part);
  EXPECT_EQ(facts.first_frame, 16000);
  EXPECT_EQ(facts.frames, 16000);
  EXPECT_NEAR(facts.dc, 0.5, 1e-6);
  EXPECT_EQ(hear(folder, samples, {.start = 2, .seconds = 1.04}).frames, 16000) << "rounded";
  EXPECT_EQ(hear(folder, samples, {.start = 2}).frames, 16000) << "to the end";
  EXPECT_EQ(fault_of([&] { hear(folder, samples, {.start = 2, .seconds = 2}); }),
            AudioFault::truncated);
  EXPECT_EQ(fault_of([&] { hear(folder, samples, {.start = 9}); }), AudioFault::truncated);
}

TEST(SoundFacts, DoNotDecodeWhatIsNotAskedFor) {
  const TestFolder folder;
  const std::vector<float> samples = tests::samples_of({.seconds = 2});
  for (const ListenOptions& options :
       {ListenOptions{.decode = false}, ListenOptions{.decode_at_most = 1}}) {
    const SoundFacts facts = hear(folder, samples, options);
    EXPECT_FALSE(facts.decoded);
    EXPECT_EQ(facts.frames, 32000);
    EXPECT_EQ(facts.fingerprint, 0u);
  }
}

}  // namespace
}  // namespace tandem
