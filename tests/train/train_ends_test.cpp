// What a run leaves behind, however it ends, and how it goes on from there.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "checkpoint/run_folder.h"
#include "device/simulated.h"
#include "train/seen_run.h"
#include "util/atomic_file.h"
#include "util/clock.h"
#include "util/folder_lock.h"
#include "util/signals.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

Config run_in(const fs::path& folder, int64_t steps) {
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = 8;
  config.training.multi_gpu = true;
  config.training.max_steps = steps;
  config.training.save_step = 100;
  config.training.val_step = 0;
  config.training.collective_timeout = 20;
  config.paths.checkpoint_dir = folder.string();
  return config;
}

// Learns, and then is led astray, so that an early validation is the best one.
Config overshooting(const fs::path& folder) {
  Config config = run_in(folder, 12);
  config.training.val_step = 3;
  config.training.save_step = 4;
  config.training.schedule = "constant";
  config.training.learning_rate = 0.02;
  config.training.spike_factor = 0;
  return config;
}

TEST(TrainEnds, TheBestIsSavedWhenItIsFound) {
  TestFolder folder;
  simulate_devices(2);
  const Config config = overshooting(folder / "run");
  const Seen seen = run(config);
  ASSERT_FALSE(seen.failed) << seen.error.what();
  const auto best =
      std::ranges::min_element(seen.validation, {}, [](const auto& one) { return one.second; });
  ASSERT_NE(best->first % 4, 0) << "else it would have been saved anyway";
  const RunFolder saved(folder / "run");
  const Checkpoint found = saved.load_best().value();
  EXPECT_EQ(found.state.step, best->first);
  EXPECT_EQ(found.state.best_loss.value(), best->second);
  EXPECT_EQ(saved.latest_state()->best_step, best->first);
}

TEST(TrainEnds, EpochsAreThoseOfTheDataWhateverIsAccumulated) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "one", 1);
  config.training.max_steps = std::nullopt;
  config.training.epochs = 3;
  config.data.batch_size = 16;
  const int64_t batches = run(config).result.last_step;  // of three epochs
  ASSERT_EQ(batches % 3, 0);
  for (const int64_t accumulation : {int64_t{2}, 2 * batches}) {
    config.paths.checkpoint_dir = (folder / std::to_string(accumulation)).string();
    config.training.gradient_accumulation_steps = accumulation;
    EXPECT_EQ(run(config).result.last_step, (batches + accumulation - 1) / accumulation);
  }
}

TEST(TrainEnds, TimeThatWasTakenCountsWhenTheRunGoesOn) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 1'000'000);
  config.training.max_minutes = 0.02;
  const Seen first = run(config);
  ASSERT_FALSE(first.failed) << first.error.what();
  const RunState ended = RunFolder(folder / "run").latest_state().value();
  EXPECT_GE(ended.seconds, 1.2);
  EXPECT_TRUE(ended.finished);
  const Seen again = run(config);
  EXPECT_TRUE(again.result.already_finished);
  EXPECT_TRUE(again.train.empty());
  config.training.max_minutes = (ended.seconds + 1) / 60;
  const Seen more = run(config);
  EXPECT_FALSE(more.result.already_finished);
  EXPECT_EQ(more.result.first_step, ended.step);
  EXPECT_GE(RunFolder(folder / "run").latest_state()->seconds, ended.seconds + 1);
}

TEST(TrainEnds, AValidationGivenUpWhenTimeWasUpIsMadeUpForAndIsTheEnd) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 1'000'000);
  config.training.max_minutes = 0.02;
  config.training.val_step = 1'000'000;
  const auto start = Clock::now();
  TrainHooks hooks;  // asked to stop in the step whose end is that of the time
  hooks.on_step = [&](const StepReport&) {
    if (seconds_since(start) > 1.0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (seconds_since(start) > 1.2) request_stop(StopRequest::terminated);
  };
  const Seen first = run(config, hooks);
  EXPECT_EQ(first.error.kind(), ErrorKind::terminated) << first.error.what();
  request_stop(StopRequest::none);
  const RunState stopped = RunFolder(folder / "run").latest_state().value();
  EXPECT_TRUE(stopped.owes_checks);
  const Seen second = run(config);
  EXPECT_TRUE(second.train.empty());
  EXPECT_TRUE(second.validation.contains(stopped.step));
  EXPECT_TRUE(RunFolder(folder / "run").latest_state()->finished);
}

TEST(TrainEnds, ARunKilledBeforeItsModelWasWrittenIsNotFinished) {
  TestFolder folder;
  simulate_devices(1);
  const Config config = run_in(folder / "run", 3);
  run(config);
  const fs::path state = folder / "run" / "latest" / "state.json";
  std::string text = read_file(state);
  const size_t at = text.find("\"finished\": true");
  ASSERT_NE(at, std::string::npos) << text;
  write_file_atomically(state, text.replace(at, 16, "\"finished\": false"));
  const Seen again = run(config);
  EXPECT_TRUE(again.result.already_finished);
  EXPECT_NE(again.out.find("was stopped before its model was written"), std::string::npos);
  EXPECT_TRUE(RunFolder(folder / "run").latest_state()->finished);
}

TEST(TrainEnds, ReplicasThatDifferEndTheRunWhoeverElseIsAtWork) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "flip:rank=2,step=4", 1);
  simulate_devices(3);
  Config config = run_in(folder / "run", 20);
  config.training.check_replicas = config.training.val_step = 5;  // the others go on to validate
  const Seen seen = run(config);
  EXPECT_EQ(seen.error.kind(), ErrorKind::peer);
  EXPECT_EQ(exit_code(seen.error.kind()), 7);
  EXPECT_STREQ(seen.error.what(), "the weights of rank 2 differ from those of rank 0 after step 5");
}

TEST(TrainEnds, AnErrorInAValidationIsThatOfTheRun) {
  TestFolder folder;
  simulate_devices(3);
  Config config = run_in(folder / "run", 20);
  config.training.val_step = 5;
  for (const bool validation : {false, true}) {
    TrainHooks hooks;
    hooks.on_step = [validation](const StepReport& report) {
      if (report.step == 5 && report.validation == validation)
        throw Error(ErrorKind::io, "metrics.jsonl cannot be written");
    };
    config.paths.checkpoint_dir = (folder / (validation ? "second" : "first")).string();
    config.training.ema_decay = 0.5;  // is broken off with the average in the weights' place
    const Seen seen = run(config, hooks);
    EXPECT_EQ(seen.error.kind(), ErrorKind::io) << seen.error.what();
    if (!validation) continue;
    const RunState kept = RunFolder(config.paths.checkpoint_dir).latest_state().value();
    EXPECT_EQ(kept.step, 5);
    EXPECT_TRUE(kept.owes_checks);
    const Seen more = run(config);
    ASSERT_FALSE(more.failed) << more.error.what();
    EXPECT_EQ(more.validation.begin()->first, 5) << "is made up for";
    Config straight = config;
    straight.paths.checkpoint_dir = (folder / "straight").string();
    EXPECT_EQ(run(straight).train.at(20), more.train.at(20));
  }
}

// Its queue, of which it reads nothing, fills up; the others must not wait behind it.
TEST(TrainEnds, ARankThatFailsInAValidationIsNamedAtOnce) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "judge:rank=2,step=2", 1);
  simulate_devices(3);
  Config config = run_in(folder / "run", 4);
  std::string text;
  for (int i = 0; i < 40; ++i) text += read_file(TANDEM_SOURCE_DIR "/LICENSE");
  config.data.train_data = (folder / "long.txt").string();
  write_file_atomically(*config.data.train_data, text);
  config.training.val_step = 2;
  const Seen seen = run(config);
  EXPECT_STREQ(seen.error.what(), "fault on purpose at rank 2, behind step 2");
}

TEST(TrainEnds, TheDumpOfAStepThatFailsTakesThatStepAgain) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "nan:rank=1,step=6,steps=100", 1);
  simulate_devices(2);
  Config config = run_in(folder / "run", 20);
  config.training.save_step = 2;
  config.training.max_bad_steps = 3;
  const Seen seen = run(config);
  EXPECT_EQ(seen.error.kind(), ErrorKind::numeric) << seen.error.what();
  const fs::path dump = folder / "run" / "bad-step-8";
  const Checkpoint left = RunFolder(dump).load_latest().value();
  EXPECT_EQ(left.state.step, 7);
  EXPECT_EQ(left.state.next_batch, 7);
  // As nothing was taken behind step 5, its weights are those.
  config.training.max_steps = 5;
  config.paths.checkpoint_dir = (folder / "five").string();
  unsetenv("TANDEM_FAULT");
  const Seen five = run(config);
  ASSERT_FALSE(five.failed);
  const Checkpoint good = RunFolder(folder / "five").load_latest().value();
  for (size_t i = 0; i < good.weights.size(); ++i)
    EXPECT_TRUE(at::equal(good.weights[i].second, left.weights[i].second)) << good.weights[i].first;
  // The command the warning tells.
  EXPECT_NE(
      seen.err.find("--checkpoint-dir " + dump.string() + " training.enable_eager_debug=true"),
      std::string::npos)
      << seen.err;
  setenv("TANDEM_FAULT", "nan:rank=1,step=6,steps=100", 1);
  config.training.max_steps = 20;
  config.training.enable_eager_debug = true;
  config.paths.checkpoint_dir = dump.string();
  const Seen again = run(config);
  EXPECT_TRUE(std::string(again.error.what()).starts_with("step 8: the first number that is not"))
      << again.error.what();
}

TEST(TrainEnds, TheDumpsCommandIsThatOfOneStageAndOfThisFolder) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "nan:rank=0,step=2,steps=100", 1);
  simulate_devices(1);
  Config config = run_in(folder / "run", 20);
  config.training.max_bad_steps = 2;
  const std::string said =
      capture([&] {
        EXPECT_THROW(
            train(config, {},
                  {.resolved_config_yaml = "", .asked_fresh = true, .alone_with = " --stage x"}),
            Error);
      }).err;
  EXPECT_NE(said.find("begins at step 3: the same command, without --fresh, with --stage x "
                      "--checkpoint-dir " +
                      (folder / "run/bad-step-3").string() + " training.enable_eager_debug=true"),
            std::string::npos)
      << said;
}

TEST(TrainEnds, AFolderIsTrainedIntoByOneProcess) {
  TestFolder folder;
  simulate_devices(1);
  const Config config = run_in(folder / "run", 2);
  ASSERT_FALSE(run(config).failed);
  const FolderLock held(folder / "run");
  const Seen second = run(config);
  EXPECT_EQ(second.error.kind(), ErrorKind::io);
  EXPECT_EQ(std::string(second.error.what()),
            "another process is writing into `" + (folder / "run").string() + "`");
}

// What writes first: a checkpoint, or samples, whose folder is in the run's.
TEST(TrainEnds, SamplesOfAFolderThatIsGoneAreNotMade) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 20);
  config.training.save_step = 4;
  config.observe.sample_step = 7;
  TrainHooks hooks;
  hooks.on_sample = [](const SampleReport&) {};
  hooks.on_step = [&](const StepReport& report) {
    if (report.step == 6) fs::rename(folder / "run", folder / "away");
  };
  const Seen seen = run(config, hooks);
  EXPECT_EQ(seen.error.kind(), ErrorKind::io);
  EXPECT_EQ(seen.train.rbegin()->first, 7) << "not first at the checkpoint behind step 8";
}

TEST(TrainEnds, AFolderThatIsGoneIsNotMadeAnew) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 20);
  config.training.save_step = 4;
  TrainHooks hooks;
  hooks.on_checkpoint = [&](const std::string& saved) {
    if (saved.ends_with("step-4")) fs::rename(folder / "run", folder / "away");
  };
  const Seen seen = run(config, hooks);
  EXPECT_EQ(seen.error.kind(), ErrorKind::io);
  EXPECT_TRUE(std::string(seen.error.what()).ends_with("was writing into it")) << seen.error.what();
  EXPECT_FALSE(fs::exists(folder / "run"));
  fs::rename(folder / "away", folder / "run");
  EXPECT_EQ(run(config).result.first_step, 4);
}

TEST(TrainEnds, ARunGoesOnWithItsDataUnderAnotherName) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 2);
  fs::copy_file(TANDEM_SOURCE_DIR "/LICENSE", folder / "text");
  config.data.train_data = (folder / "text").string();
  ASSERT_FALSE(run(config).failed);
  fs::rename(folder / "text", folder / "other");
  config.data.train_data = (folder / "run/../other").string();
  config.training.max_steps = 4;
  EXPECT_EQ(run(config).result.first_step, 2);
  write_file_atomically(folder / "other", read_file(folder / "other").substr(0, 6000));
  config.training.max_steps = 6;
  const Seen other = run(config);
  EXPECT_EQ(other.error.kind(), ErrorKind::config);
  EXPECT_NE(std::string(other.error.what()).find("it has text windows="), std::string::npos)
      << other.error.what();
}

TEST(TrainEnds, WhoIsRefusedChangesNothing) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 2);
  ASSERT_FALSE(run(config).failed);
  const std::string before = read_file(folder / "run/fingerprint");
  write_file_atomically(folder / "other", read_file(*config.data.train_data).substr(0, 6000));
  Config other = config;
  other.data.train_data = (folder / "other").string();
  EXPECT_EQ(run(other).error.kind(), ErrorKind::config);
  EXPECT_EQ(read_file(folder / "run/fingerprint"), before);
}

TEST(TrainEnds, RunsOfEarlierVersionsGoOn) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 2);
  ASSERT_FALSE(run(config).failed);
  write_file_atomically(folder / "run/corpus", "text\n");
  config.training.max_steps = 4;
  EXPECT_EQ(run(config).result.first_step, 2);
  fs::remove(folder / "run/corpus");
  config.training.max_steps = 6;
  EXPECT_EQ(run(config).result.first_step, 4);
  EXPECT_TRUE(fs::exists(folder / "run/corpus"));
}

// What its files do not say is found when its weights are read, before its files say it.
TEST(TrainEnds, WhatCannotBeLoadedChangesNothingEither) {
  TestFolder folder;
  simulate_devices(1);
  const Config config = run_in(folder / "run", 2);
  ASSERT_FALSE(run(config).failed);
  const fs::path weights = folder / "run/latest/model.safetensors";
  fs::rename(weights, folder / "aside");
  write_file_atomically(folder / "run/corpus", "text\n");
  EXPECT_TRUE(run(config).failed);
  EXPECT_EQ(read_file(folder / "run/corpus"), "text\n");
}

TEST(TrainEnds, WhatIsToldToStopBeforeItBeginsDoesNot) {
  TestFolder folder;
  simulate_devices(1);
  request_stop(StopRequest::terminated);
  const Seen seen = run(run_in(folder / "run", 2));
  request_stop(StopRequest::none);
  EXPECT_EQ(seen.error.kind(), ErrorKind::terminated);
  EXPECT_STREQ(seen.error.what(), "terminated before a step was taken");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(TrainEnds, WhatAKilledProcessHadBegunIsGoneAfterTheNextStart) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 2);
  ASSERT_FALSE(run(config).failed);
  const fs::path begun[] = {folder / "run/.draft-1-step-4",
                            folder / "run/step-2/.draft-1-state.json",
                            folder / "run/bad-step-2/.draft-1-step-1"};
  for (const fs::path& one : begun) fs::create_directories(one);
  config.training.max_steps = 4;
  ASSERT_FALSE(run(config).failed);
  for (const fs::path& one : begun) EXPECT_FALSE(fs::exists(one)) << one;
}

// A run that is killed behind its time, but before it ends, has its end still to come.
TEST(TrainEnds, TimeIsUpWhereTheRunHasSeenIt) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 1'000'000);
  config.training.max_minutes = 0.02;
  config.training.save_step = 1;
  TrainHooks hooks;  // the first step ends behind the time
  hooks.on_step = [](const StepReport& report) {
    if (report.step == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  };
  const Seen seen = run(config, hooks);
  const int64_t last = seen.train.rbegin()->first;
  ASSERT_EQ(last, 2) << "it hears of the time in the next";
  const auto seconds = [&](int64_t step) {
    const auto state = folder / "run" / ("step-" + std::to_string(step)) / "state.json";
    const std::string text = read_file(state), key = "\"seconds\": ";
    return std::stod(text.substr(text.find(key) + key.size()));
  };
  EXPECT_GE(seconds(last), 1.2);
  EXPECT_LT(seconds(1), 1.2);
}

TEST(TrainEnds, AFinishedRunKeepsItsSettingsAndOneThatGoesOnTellsOfOthers) {
  TestFolder folder;
  simulate_devices(1);
  Config config = run_in(folder / "run", 2);
  const auto with_rate = [&](const std::string& rate) {
    const std::string yaml = "training:\n  learning_rate: " + rate + "  # default\n";
    Seen seen;
    seen.out = capture([&] { train(config, {}, {.resolved_config_yaml = yaml}); }).out;
    return seen;
  };
  const fs::path settings = folder / "run" / "config.yaml";
  with_rate("0.1");
  EXPECT_EQ(with_rate("0.2").out.find("goes on with"), std::string::npos);
  EXPECT_NE(read_file(settings).find("learning_rate: 0.1"), std::string::npos);
  config.training.max_steps = 4;
  EXPECT_NE(with_rate("0.2").out.find("goes on with training.learning_rate = 0.2, which was 0.1"),
            std::string::npos);
  EXPECT_NE(read_file(settings).find("learning_rate: 0.2"), std::string::npos);
}

TEST(TrainEnds, PartsForWantOfMemoryAreRememberedByReplica) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "oom:rank=1,step=2", 1);
  simulate_devices(2);
  Config config = run_in(folder / "run", 4);
  ASSERT_FALSE(run(config).failed);
  EXPECT_EQ(RunFolder(folder / "run").latest_state()->divisions, (std::vector<int64_t>{1, 2}));
  unsetenv("TANDEM_FAULT");
  config.training.max_steps = 6;
  const Seen more = run(config);
  EXPECT_EQ(more.result.first_step, 4);
  EXPECT_EQ(RunFolder(folder / "run").latest_state()->divisions, (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace tandem
