#include "observe/doctor_trial.h"

#include <gtest/gtest.h>

#include "device/registry.h"
#include "tandem/devices.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

TrialFigures good_trial() {
  return {.eager = {.step_seconds = 0.02, .peak_bytes = 1e6},
          .fused = {.step_seconds = 0.016},
          .captured = {.step_seconds = 0.01, .captures = 1},
          .both = {.step_seconds = 0.005, .captures = 1},
          .on_gpu = true,
          .device = "/GPU:0",
          .words = "w"};
}

}  // namespace

TEST(StepTrial, PrintsTheSpeedUps) {
  const auto checks = check_steps(good_trial());
  ASSERT_EQ(checks.size(), 5u);
  for (const Check& check : checks) EXPECT_EQ(check.verdict, Verdict::pass) << check.found;
  EXPECT_EQ(checks[0].found, "20.00 ms a step");
  EXPECT_EQ(checks[1].found, "16.00 ms a step, 1.25 times the eager speed");
  EXPECT_EQ(checks[3].found, "5.00 ms a step, 4.00 times the eager speed, 1 captures");
}

TEST(StepTrial, SlowerFailsOnAGpu) {
  TrialFigures slow = good_trial();
  slow.captured.step_seconds = 0.03;
  EXPECT_EQ(check_steps(slow)[2].verdict, Verdict::fail);
  slow = good_trial();
  slow.captured.captures = 0;
  EXPECT_EQ(check_steps(slow)[2].verdict, Verdict::fail);
  slow.captured.captures = 20;
  EXPECT_EQ(check_steps(slow)[2].advice, "it captures again and again");
  slow = good_trial();
  slow.eager.peak_bytes = 0;
  EXPECT_EQ(check_steps(slow)[4].verdict, Verdict::fail);
}

TEST(StepTrial, WhereOnlyTheCpuIsNothingIsPlaced) {
  TrialFigures figures = good_trial();
  figures.on_gpu = figures.counted = false;
  figures.device = "/CPU:0";
  const Check check = check_steps(figures)[4];
  EXPECT_EQ(check.verdict, Verdict::skip);
  EXPECT_EQ(check.found, "all work is done on /CPU:0 (w)");
}

TEST(StepTrial, AStepThatCannotRunFailsWithItsReason) {
  TrialFigures broken = good_trial();
  broken.fused.failure = "out of memory";
  const Check check = check_steps(broken)[1];
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_EQ(check.found, "out of memory");
}

TEST(StepTrial, RunsRealStepsWithoutAGpu) {
  configure_devices({.simulate_gpus = 1});
  const TrialFigures figures =
      try_steps(DeviceRegistry::get().find("/GPU:0"), {.model_size = "tiny", .steps = 1});
  EXPECT_EQ(figures.eager.failure, "");
  EXPECT_GT(figures.eager.step_seconds, 0);
  EXPECT_GT(figures.fused.step_seconds, 0);
  const auto checks = check_steps(figures);
  EXPECT_EQ(checks[0].verdict, Verdict::pass);
  EXPECT_EQ(checks[2].verdict, Verdict::skip);
  EXPECT_EQ(checks[2].found, "needs a GPU: there is nothing to capture on /GPU:0");
  EXPECT_EQ(checks[4].verdict, Verdict::pass) << checks[4].found;
  EXPECT_EQ(thrown_by([] {
              try_steps(DeviceRegistry::get().find("/GPU:0"), {.model_size = "huge"});
            }).kind,
            "config");
}

TEST(CheckpointNeed, FollowsStageAndSize) {
  Config config;
  config.training.keep_checkpoints = 2;
  const uint64_t bytes = checkpoint_need(config).parameters;
  EXPECT_GT(bytes, 0u);
  config.model.size = "normal";
  EXPECT_GT(checkpoint_need(config).parameters, bytes);
  EXPECT_EQ(checkpoint_need(config).all(), 4 * checkpoint_need(config).one());
  config.training.stage = "gpt";
  EXPECT_GT(checkpoint_need(config).parameters, 400'000'000u);
  config.training.stage = "decoder";
  EXPECT_GT(checkpoint_need(config).parameters, 50'000'000u);  // with its discriminators
  config.training.ema_decay = 0.999;
  EXPECT_TRUE(checkpoint_need(config).average);
}

}  // namespace tandem::tests
