// Stages that are stopped and go on: every figure they report is that of a run that was not.
#include <gtest/gtest.h>

#include "checkpoint/run_folder.h"
#include "device/simulated.h"
#include "train/seen_run.h"
#include "train/voice_corpus.h"
#include "util/signals.h"

namespace tandem {
namespace {

// Codes are revived in steps 10, 20, 30 and 40, and the codebook's averages go back to the start.
TEST(VoiceBits, TheDvaeGoesOnFromWhereItWasStopped) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  const auto dvae = [&](const std::string& name) {
    Config config = corpus.config("dvae", 40, name);
    config.training.save_step = config.training.val_step = 20;
    config.training.ema_decay = 0.9;
    config.observe.sample_count = 0;
    return config;
  };
  const Seen straight = run(dvae("straight"));
  ASSERT_FALSE(straight.failed) << straight.error.what();
  ASSERT_EQ(straight.train.size(), 40u);

  TrainHooks hooks;
  hooks.on_step = [](const StepReport& report) {
    if (report.step == 20 && report.validation) request_stop(StopRequest::terminated);
  };
  const Seen first = run(dvae("halves"), hooks);
  EXPECT_EQ(first.error.kind(), ErrorKind::terminated) << first.error.what();
  const int64_t stopped = RunFolder(corpus.folder / "halves").latest_state()->step;
  EXPECT_EQ(stopped, first.train.rbegin()->first);
  EXPECT_LT(stopped, 25);
  request_stop(StopRequest::none);
  const Seen second = run(dvae("halves"));
  ASSERT_FALSE(second.failed) << second.error.what();
  EXPECT_EQ(second.result.first_step, stopped);
  Figures halves = first.figures;
  halves.insert(second.figures.begin(), second.figures.end());
  EXPECT_EQ(halves, straight.figures);
}

TEST(VoiceBits, TheDecoderGoesOnFromWhereItEnded) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  ASSERT_FALSE(run(corpus.config("dvae", 2, "start")).failed);
  ASSERT_FALSE(run(corpus.gpt_config(2, "voice")).failed);
  const auto decoder = [&](int64_t steps, const std::string& name) {
    Config config = corpus.decoder_config(steps, name);
    config.training.deterministic = true;
    config.training.save_step = config.training.val_step = 1;
    config.data.validation_share = 0.01;  // one clip
    return config;
  };
  const Figures straight = run(decoder(2, "straight")).figures;
  Figures halves = run(decoder(1, "halves")).figures;
  halves.merge(run(decoder(2, "halves")).figures);
  EXPECT_TRUE(straight.contains("step 2 loss") && straight.contains("validation 2 loss"));
  EXPECT_EQ(halves, straight);
}

}  // namespace
}  // namespace tandem
