// What a run that goes on knows of the one before, and what nobody waits for.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "checkpoint/run_folder.h"
#include "device/simulated.h"
#include "train/seen_run.h"
#include "util/atomic_file.h"
#include "util/signals.h"

namespace tandem {
namespace {

Config bytes_run(const std::filesystem::path& folder, int64_t steps) {
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = 4;
  config.training.max_steps = steps;
  config.training.val_step = 5;
  config.training.save_step = 100;
  config.training.early_stop_patience = 50;
  config.paths.checkpoint_dir = folder.string();
  return config;
}

// The validation behind step 10 found the best so far; then the samples failed.
TEST(TrainGoesOn, TheBestOfAValidationBehindWhichSomethingFailedIsFoundAgain) {
  const TestFolder folder;
  simulate_devices(1);
  const Config straight = bytes_run(folder / "straight", 10),
               config = bytes_run(folder / "run", 10);
  const auto sample = [](bool fails) {
    return TrainHooks{.on_sample = [fails](const SampleReport&) {
      if (fails) throw Error(ErrorKind::io, "the sample cannot be written");
    }};
  };
  ASSERT_FALSE(run(straight, sample(false)).failed);
  TrainHooks broken = sample(true);
  broken.on_step = [](const StepReport& report) {
    if (report.validation && report.step == 10) throw Error(ErrorKind::io, "no more lines");
  };
  EXPECT_TRUE(run(config, broken).failed);
  const Seen again = run(config, sample(false));
  ASSERT_FALSE(again.failed) << again.error.what();
  const Checkpoint best = RunFolder(folder / "run").load_best().value(),
                   expected = RunFolder(folder / "straight").load_best().value();
  EXPECT_EQ(best.state.step, expected.state.step);
  EXPECT_EQ(best.state.step, 10);
  const RunState state = RunFolder(folder / "run").latest_state().value(),
                 whole = RunFolder(folder / "straight").latest_state().value();
  EXPECT_EQ(state.best_step, whole.best_step);
  EXPECT_EQ(state.validations_without_gain, whole.validations_without_gain);
}

// The next checkpoint waits for it, and with it all ranks; no collective does.
TEST(TrainGoesOn, ADiskSlowerThanACollectiveWaitsEndsNoRun) {
  const TestFolder folder;
  simulate_devices(2);
  Config config = bytes_run(folder / "run", 4);
  config.training.multi_gpu = true;
  config.training.save_step = 1;
  config.training.collective_timeout = 0.5;
  TrainHooks hooks;
  hooks.on_checkpoint = [](const std::string&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  };
  const Seen seen = run(config, hooks);
  EXPECT_FALSE(seen.failed) << seen.error.what();
  EXPECT_EQ(seen.result.last_step, 4);
}

TEST(TrainGoesOn, ARunThatWritesItsModelLaterSaysThatItIsThere) {
  const TestFolder folder;
  simulate_devices(1);
  const Config config = bytes_run(folder / "run", 3);
  run(config);
  const auto file = folder / "run" / "latest" / "state.json";
  std::string text = read_file(file);
  const size_t at = text.find("\"finished\": true");
  ASSERT_NE(at, std::string::npos) << text;
  write_file_atomically(file, text.replace(at, 16, "\"finished\": false"));
  bool started = false;
  run(config, {.on_start = [&](const std::string&, int64_t first, int64_t total) {
        started = first == 3 && total == 3;
      }});
  EXPECT_TRUE(started) << "whoever watches hears of its end";
}

TEST(TrainGoesOn, InHalfPrecisionWithAScaleOfItsOwn) {
  const TestFolder folder;
  simulate_devices(1);
  Config config = bytes_run(folder / "run", 2);
  ASSERT_FALSE(run(config).failed);
  config.training.precision = "fp16";
  config.training.max_steps = 4;
  const Seen more = run(config);
  EXPECT_FALSE(more.failed) << more.error.what();
  EXPECT_EQ(more.result.last_step, 4);
}

TEST(TrainGoesOn, OneThatHadNotBegunIsToldHowItBegins) {
  const TestFolder folder;
  simulate_devices(1);
  const Config config = bytes_run(folder / "run", 3);
  catch_stop_signals();
  raise(SIGINT);
  const Error error =
      error_of([&] { train(config, {}, {.goes_on_with = "go on so", .begins_with = "begin so"}); });
  EXPECT_EQ(error.hint(), "begin so");
  EXPECT_EQ(error_of([&] { train(config, {}, {.goes_on_with = "go on so"}); }).hint(), "go on so")
      << "a later one of several stages";
}

}  // namespace
}  // namespace tandem
