// Runs that end before their steps are done, because the validation loss gets no better.
#include <gtest/gtest.h>

#include "checkpoint/run_folder.h"
#include "device/simulated.h"
#include "models/xtts/trained_stages.h"
#include "train/seen_run.h"
#include "train/voice_corpus.h"

namespace tandem {
namespace {

// A GPT that learns nothing: no step is as small as its weights' last bits.
Config learning_nothing(const VoiceCorpus& corpus) {
  Config config = corpus.gpt_config(40, "run");
  config.training.multi_gpu = true;
  config.training.learning_rate = 1e-30;
  config.training.save_step = 100;
  config.training.early_stop_patience = 2;
  return config;
}

TEST(EarlyEnd, IsThatOfARunWhoseValidationGetsNoBetter) {
  const VoiceCorpus corpus;
  simulate_devices(2);
  ASSERT_FALSE(run(corpus.config("dvae", 2, "start")).failed);
  Config config = learning_nothing(corpus);
  const Seen seen = run(config);
  ASSERT_FALSE(seen.failed) << seen.error.what();
  // The first validation, behind step 2, is the best; the two behind it are no better.
  EXPECT_EQ(seen.result.last_step, 6);
  EXPECT_NE(seen.out.find("the validation loss has not improved for 2 validations: stopping after "
                          "step 6\n"),
            std::string::npos)
      << seen.out;
  const RunFolder saved(corpus.folder / "run");
  const RunState state = saved.latest_state().value();
  EXPECT_EQ(state.step, 6);
  EXPECT_EQ(state.validations_without_gain, 2);
  EXPECT_EQ(state.best_step, 2);
  EXPECT_TRUE(state.finished);
  EXPECT_EQ(saved.load_best()->state.step, 2);
  EXPECT_TRUE(trained_stages((corpus.folder / "run/model").string()).contains("gpt"));

  const Seen again = run(config);
  EXPECT_TRUE(again.result.already_finished);
  EXPECT_TRUE(again.figures.empty());
  EXPECT_NE(again.out.find("nothing to do: `" + (corpus.folder / "run").string() +
                           "` ended after step 6\n"),
            std::string::npos)
      << again.out;

  config.training.early_stop_patience = 4;  // two validations more
  const Seen patient = run(config);
  ASSERT_FALSE(patient.failed) << patient.error.what();
  EXPECT_EQ(patient.result.first_step, 6);
  EXPECT_EQ(patient.result.last_step, 10);
}

TEST(EarlyEnd, DoesNotComeWhileItGetsBetter) {
  const TestFolder folder;
  simulate_devices(1);
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = 8;
  config.training.max_steps = 12;
  config.training.val_step = 3;
  config.training.early_stop_patience = 1;
  config.paths.checkpoint_dir = (folder / "run").string();
  const Seen seen = run(config);
  ASSERT_FALSE(seen.failed) << seen.error.what();
  EXPECT_EQ(seen.result.last_step, 12);
  EXPECT_EQ(RunFolder(folder / "run").latest_state()->validations_without_gain, 0);
}

}  // namespace
}  // namespace tandem
