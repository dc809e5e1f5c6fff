// What the GPT stage lets people hear.
#include <gtest/gtest.h>

#include "device/simulated.h"
#include "train/seen_run.h"
#include "train/voice_corpus.h"

namespace tandem {
namespace {

std::vector<SampleReport> samples_of(Config config) {
  config.training.max_steps = 1;
  config.observe.sample_count = 2;
  std::vector<SampleReport> samples;
  const Seen seen =
      run(config, {.on_sample = [&](const SampleReport& sample) { samples.push_back(sample); }});
  EXPECT_FALSE(seen.failed) << seen.error.what();
  EXPECT_EQ(samples.size(), 2U) << seen.err;
  return samples;
}

TEST(GptSamples, AreSpokenByTheVocoderWhereItWasTrained) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  ASSERT_FALSE(run(corpus.config("dvae", 2, "start")).failed);
  for (const SampleReport& sample : samples_of(corpus.gpt_config(1, "gpt")))
    EXPECT_EQ(sample.rate, 22050) << "Griffin-Lim of the DVAE's mels";
  ASSERT_FALSE(run(corpus.gpt_config(2, "voice")).failed);
  ASSERT_FALSE(run(corpus.decoder_config(1, "spoken")).failed);
  Config config = corpus.gpt_config(1, "again");
  config.model.pretrained = (corpus.folder / "spoken/model").string();
  for (const SampleReport& sample : samples_of(config)) {
    EXPECT_EQ(sample.rate, 24000);
    // A frame of mel is 256 samples at 22,050 Hz, a code 4; what is no code of the DVAE has no mel.
    EXPECT_NEAR(static_cast<double>(sample.wave.size()) / 24000,
                static_cast<double>(sample.frames) * 256 / 22050, 0.12);
  }
}

}  // namespace
}  // namespace tandem
