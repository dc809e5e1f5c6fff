// A run that saves after every step, killed at any moment: what `latest` names can always be
// loaded, and the next start leaves nothing of the broken one behind. TANDEM_KILLS=100 (make soak)
// for long.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "checkpoint/run_folder.h"
#include "cli/voice_trainer.h"
#include "support/program.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

std::vector<std::string> saving_run(const std::filesystem::path& run, const std::string& steps) {
  return {"train",
          "--simulate-gpus",
          "2",
          "--data-gpu",
          "0",
          "--model-gpu",
          "1",
          "--train-data",
          TANDEM_SOURCE_DIR "/LICENSE",
          "--batch-size",
          "4",
          "--max-steps",
          steps,
          "--checkpoint-dir",
          run.string(),
          "training.save_step=1",
          "training.val_step=7",
          "data.model_start_delay=0.01",
          "training.ema_decay=0.9"};
}

int64_t saved_step(const std::filesystem::path& run) {
  const auto state = RunFolder(run).latest_state();
  return state ? state->step : 0;
}

template <class Condition>
void wait_until(const Condition& condition) {
  for (int i = 0; i < 3000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

TEST(TrainKilledSoak, AlwaysHasALatestThatLoadsAndLeavesNoLitter) {
  const TestFolder folder;
  const auto run = folder / "run";
  const char* asked = std::getenv("TANDEM_KILLS");
  const int kills = asked ? std::atoi(asked) : 6;
  int64_t last = 0;
  for (int i = 0; i < kills; ++i) {
    Program program(saving_run(run, "1000000"));
    // Mostly once it has saved something new, at any moment of what follows; now and then while it
    // starts.
    const auto draw = [&](uint64_t below) {
      return std::chrono::milliseconds(
          counted_below(below, 1, "kill", static_cast<uint64_t>(i), below));
    };
    if (i % 4 != 3) wait_until([&] { return saved_step(run) > last; });
    std::this_thread::sleep_for(draw(i % 4 != 3 ? 300 : 800));
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait().code, 128 + SIGKILL);
    const auto checkpoint = RunFolder(run).load_latest();
    if (!checkpoint) continue;  // killed before its first step
    EXPECT_GE(checkpoint->state.step, last);
    last = checkpoint->state.step;
  }
  EXPECT_GT(last, 0);
  const ProgramRun whole = run_program(saving_run(run, std::to_string(last + 3)));
  ASSERT_EQ(whole.code, 0) << whole.err;
  for (const std::string& name : names_in(run)) {
    const bool known = name.starts_with("step-") || name == "latest" || name == "best" ||
                       name == "config.yaml" || name == "fingerprint" || name == "corpus" ||
                       name.ends_with(".jsonl") || name == "tensorboard" || name == "report.html";
    EXPECT_TRUE(known) << name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    if (!entry.is_directory() || !entry.path().filename().string().starts_with("step-")) continue;
    EXPECT_EQ(names_in(entry.path()),
              (std::set<std::string>{"average.safetensors", "model.safetensors",
                                     "optimizer.safetensors", "state.json"}));
  }
}

// Of a voice: samples and the model are written as well.
TEST(TrainKilledSoak, AVoiceLeavesNoLitterEither) {
  const VoiceTrainer trainer;
  const char* asked = std::getenv("TANDEM_KILLS");
  const int kills = asked ? std::atoi(asked) : 3;
  const std::vector<std::string> often = {"training.save_step=1", "training.val_step=2",
                                          "observe.sample_step=1", "observe.sample_count=2"};
  const auto words = [&](int64_t steps) {
    std::vector<std::string> all = trainer.words(often);
    all.insert(all.end(), {"--max-steps", std::to_string(steps)});
    return all;
  };
  int64_t last = 0;
  for (int i = 0; i < kills; ++i) {
    // Every third comes to its end, and is killed near it.
    Program program(words(i % 3 == 2 ? last + 2 : 1000000));
    wait_until([&] { return saved_step(trainer.run()) > last; });
    std::this_thread::sleep_for(
        std::chrono::milliseconds(counted_below(300, 2, "kill", static_cast<uint64_t>(i), 0)));
    program.signal(SIGKILL);
    program.wait();
    const auto checkpoint = RunFolder(trainer.run()).load_latest();
    ASSERT_TRUE(checkpoint);
    EXPECT_GT(checkpoint->state.step, last);
    last = checkpoint->state.step;
  }
  const ProgramRun whole = run_program(words(last + 2));
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(std::filesystem::exists(trainer.run() + "/model/dvae.safetensors"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(trainer.run()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
}

}  // namespace
}  // namespace tandem
