// The sounds are gone while a run reads them, and come back.
#include <gtest/gtest.h>

#include "checkpoint/run_folder.h"
#include "device/simulated.h"
#include "train/seen_run.h"
#include "train/voice_corpus.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A batch at a time, so that nothing is read long before it is trained on.
Config slow_reader(const VoiceCorpus& corpus, int64_t steps, const std::string& name) {
  Config config = corpus.config("dvae", steps, name);
  config.data.buffer_size = 1;
  config.data.num_workers = 1;
  config.data.decoded_memory = 0;
  config.observe.sample_count = 0;
  return config;
}

// Moves the sounds away behind step 3; gives how the run ended.
Seen run_until_gone(const VoiceCorpus& corpus, const Config& config) {
  TrainHooks hooks;
  hooks.on_step = [&](const StepReport& report) {
    if (report.step == 3) fs::rename(corpus.folder / "wavs", corpus.folder / "away");
  };
  return run(config, hooks);
}

TEST(VanishedData, EndsARunWithASentenceAndItsLastCheckpointStays) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  Config config = slow_reader(corpus, 40, "straight");
  config.training.val_step = 0;
  const Seen straight = run(config);
  ASSERT_FALSE(straight.failed) << straight.error.what();

  config.paths.checkpoint_dir = (corpus.folder / "run").string();
  const Seen seen = run_until_gone(corpus, config);
  EXPECT_EQ(exit_code(seen.error.kind()), 3);
  const std::string sentence = seen.error.what(),
                    list = (corpus.folder / "run/bad_files.tsv").string();
  EXPECT_NE(sentence.find(" missing), more than 20 %; they are listed in `" + list + "`"),
            std::string::npos)
      << sentence;
  const std::string listed = read_file(list);
  EXPECT_NE(listed.find((corpus.folder / "wavs/clip").string()), std::string::npos) << listed;
  const Checkpoint kept = RunFolder(corpus.folder / "run").load_latest().value();
  EXPECT_GE(kept.state.step, 2);
  EXPECT_LT(kept.state.step, 40);
  EXPECT_FALSE(kept.state.finished);

  const Seen without = run(config);
  EXPECT_EQ(exit_code(without.error.kind()), 3) << "it is still gone";
  const std::string again = without.error.what();
  EXPECT_NE(again.find("clips looked at for mel statistics can be read: cannot read `" +
                       (corpus.folder / "wavs/clip").string()),
            std::string::npos)
      << again;
  EXPECT_TRUE(without.train.empty());

  fs::rename(corpus.folder / "away", corpus.folder / "wavs");
  const Seen rest = run(config);
  ASSERT_FALSE(rest.failed) << rest.error.what();
  EXPECT_EQ(rest.result.first_step, kept.state.step);
  EXPECT_EQ(rest.result.last_step, 40);
  // Nothing was learned from clips that stood in for those that were gone.
  for (const auto& [name, value] : rest.figures)
    EXPECT_EQ(value, straight.figures.at(name)) << name;
  EXPECT_TRUE(fs::exists(corpus.folder / "run/model/dvae.safetensors"));
}

TEST(VanishedData, InAValidationCostsNoStep) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  Config config = slow_reader(corpus, 6, "run");
  config.data.buffer_size = 50;  // the clips to train on are read by then
  config.training.val_step = 3;
  const Seen seen = run_until_gone(corpus, config);
  EXPECT_EQ(exit_code(seen.error.kind()), 3);
  EXPECT_NE(std::string(seen.error.what()).find("missing"), std::string::npos) << seen.error.what();
  const RunState kept = RunFolder(corpus.folder / "run").latest_state().value();
  EXPECT_EQ(kept.step, 3);
  EXPECT_TRUE(kept.owes_checks);
  fs::rename(corpus.folder / "away", corpus.folder / "wavs");
  const Seen rest = run(config);
  ASSERT_FALSE(rest.failed) << rest.error.what();
  EXPECT_EQ(rest.validation.begin()->first, 3) << "is made up for";
  EXPECT_EQ(rest.result.last_step, 6);
}

}  // namespace
}  // namespace tandem
