// data.start_jitter_ms: clips begin a little later, at another place each epoch.
#include <gtest/gtest.h>

#include <set>

#include "train/batches_corpus.h"

namespace tandem::tests {
namespace {

SpeechBatch made_speech(SpeechFeed& feed, int64_t index) {
  const at::NoGradGuard no_grad;
  const DeviceScope scope(DeviceRegistry::get().cpu());
  const auto host = feed.batches.make_host_batch(false);
  feed.batches.plan(*host, index);
  for (int task = 0; task < host->tasks; ++task) feed.batches.run_task(*host, task);
  return feed.batches.make(*host);
}

// How many steps of 1/150 s later a row begins than in `plain`; -1: it is another sound.
int64_t steps_later(const Waves& waves, const Waves& plain, size_t row, int64_t step) {
  for (int64_t steps = 0; steps <= 6; ++steps) {
    const int64_t length = plain.lengths[row] - steps * step;
    if (waves.lengths[row] != length) continue;
    const auto at = static_cast<int64_t>(row);
    if (at::equal(waves.samples[at].narrow(0, 0, length),
                  plain.samples[at].narrow(0, steps * step, length)))
      return steps;
  }
  return -1;
}

DataConfig jitter_config(const SpeechFolder& folder) {
  DataConfig config = SpeechFolder::settings();
  config.train_data = folder.index;
  config.batch_size = 7;
  config.validation_share = 0.2;
  return config;
}

}  // namespace

TEST(StartJitter, BeginsBothRatesAtTheSameMomentAndAnotherEachEpoch) {
  const SpeechFolder folder(21);
  DataConfig config = jitter_config(folder);
  const auto plain = open_training(config, voice_feed(config, 24000));
  config.start_jitter_ms = 46.5;
  const auto jittered = open_training(config, voice_feed(config, 24000));
  const int64_t batches = plain->order.batches_an_epoch();
  std::vector<std::vector<int64_t>> epochs(2);
  for (int64_t index = 0; index < 2 * batches; ++index) {
    const SpeechBatch before = made_speech(*plain, index), after = made_speech(*jittered, index);
    ASSERT_EQ(before.batch.clips, after.batch.clips);
    for (size_t row = 0; row < before.batch.clips.size(); ++row) {
      const int64_t steps = steps_later(after.waves, before.waves, row, 147);
      EXPECT_GE(steps, 0) << "batch " << index << ", row " << row;
      EXPECT_EQ(steps, steps_later(after.second, before.second, row, 160));
      epochs[static_cast<size_t>(index / batches)].push_back(steps);
    }
  }
  EXPECT_GE(std::set<int64_t>(epochs[0].begin(), epochs[0].end()).size(), 4u) << "of seven";
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_EQ(made_speech(*jittered, 1).waves.lengths, made_speech(*jittered, 1).waves.lengths)
      << "the same again after a resume";
}

TEST(StartJitter, IsNotHeardInValidation) {
  const SpeechFolder folder(21);
  DataConfig config = jitter_config(folder);
  const auto plain = open_validation(config, voice_feed(config));
  config.start_jitter_ms = 46.5;
  config.noise_snr_db = 20;
  config.pitch_shift_semitones = 2;
  const auto validation = open_validation(config, voice_feed(config));
  const SpeechBatch before = made_speech(*plain, 0), after = made_speech(*validation, 0);
  EXPECT_EQ(before.waves.lengths, after.waves.lengths);
  EXPECT_TRUE(at::equal(before.waves.samples, after.waves.samples));
}

TEST(StartJitter, GivesOtherCodesEachEpochWhichAreNotKept) {
  const SpeechFolder folder(21);
  DataConfig config = jitter_config(folder);
  config.validation_share = 0;
  for (const double jitter : {0.0, 46.5}) {
    config.start_jitter_ms = jitter;
    const auto feed = open_training(config, voice_feed(config));
    GptBatches batches(*feed, narrow_dvae_encoder(), {.code_stride = 1024});
    const int64_t an_epoch = feed->order.batches_an_epoch();
    for (int64_t index = 0; index < 2 * an_epoch; ++index) made_batch(batches, index);
    EXPECT_EQ(batches.codes().encoded(), jitter > 0 ? 2 * an_epoch : an_epoch);
  }
}

}  // namespace tandem::tests
