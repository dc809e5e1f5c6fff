// Real steps of the stage `bytes`, profiled on simulated devices.
#include "observe/profile_training.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "device/simulated.h"
#include "observe/profile_making.h"
#include "observe/profile_summary.h"
#include "observe/profile_trace.h"
#include "observe/profile_training_work.h"
#include "tandem/config.h"
#include "train/replica.h"
#include "train/stage.h"
#include "train/stages/byte_stage.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

Config text_config() {
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = 8;
  config.data.model_start_delay = 0.2;
  config.training.stage = "bytes";
  config.model.size = "tiny";
  return config;
}

ProfileOptions short_profile() {
  return {.steps = 6, .traced_steps = 2, .warm_up = 2, .cost_rounds = 0, .limits = false};
}

std::vector<std::string> parts_of(const RecordedStep& step) {
  std::vector<std::string> parts;
  for (const RecordedPart& part : step.parts) parts.emplace_back(part.kind->word);
  return parts;
}

}  // namespace

TEST(ProfileTraining, PartsAddUpToTheStepAndStepsToTheClock) {
  DeviceRequest request;
  request.simulate_gpus = 2;
  request.data_gpu = "0";
  request.model_gpu = "1";
  configure_devices(request);
  const Config config = text_config();
  const Profile profile =
      profile_in_a_quiet_moment([&] { return profile_training(config, short_profile()); });
  ASSERT_EQ(profile.replicas.size(), 1U);
  const ProfiledReplica& replica = profile.replicas[0];
  ASSERT_EQ(replica.timed.size(), 6U);
  ASSERT_EQ(replica.traced.size(), 2U);
  const StepFigures figures = step_figures_of(profile, replica);
  EXPECT_GT(figures.accounted, 0.97);
  EXPECT_LE(figures.accounted, 1.0);
  EXPECT_NEAR(figures.mean / figures.wall, 1, 0.03);
  for (const RecordedStep& step : replica.timed)
    EXPECT_EQ(parts_of(step), (std::vector<std::string>{"inputs", "wait for data", "copy", "pass",
                                                        "optimizer", "finish", "read back"}));
  // Operations of the step fill most of its pass.
  const auto operations = operation_rows(profile, 0);
  double sum = 0, flops = 0;
  for (const WorkRow& row : operations) {
    sum += row.share;
    flops += row.flops;
  }
  EXPECT_GT(sum, 0.5);
  EXPECT_LE(sum, 1.05);
  EXPECT_GT(flops, 0);
  EXPECT_FALSE(feed_rows(profile).empty());
}

TEST(ProfileTraining, KnowsWhatFillsTheMemory) {
  LogicalDevice& device = *simulate_devices(1)[0];
  const Profile profile = profile_training(text_config(), short_profile());
  const ProfiledReplica& replica = profile.replicas[0];
  std::map<std::string, uint64_t> parts(replica.memory.begin(), replica.memory.end());
  EXPECT_GT(parts["weights"], 0U);
  EXPECT_EQ(parts["weights"], parts["gradients"]);
  EXPECT_EQ(parts["moments"], 2 * parts["weights"]);
  uint64_t sum = 0;
  for (const auto& [name, bytes] : parts) sum += bytes;
  EXPECT_GT(replica.largest_rise, 0U);
  EXPECT_GE(replica.most_used, sum);
  EXPECT_LE(replica.most_used, device.memory().peak());
}

TEST(ProfileTraining, SeesTheReductionOfReplicasAndEveryAccumulatedBatch) {
  DeviceRequest request;
  request.simulate_gpus = 2;
  request.multi_gpu = true;
  configure_devices(request);
  Config config = text_config();
  config.training.multi_gpu = true;
  config.training.gradient_accumulation_steps = 2;
  ProfileOptions options = short_profile();
  options.steps = 2;
  const Profile profile = profile_training(config, options);
  ASSERT_EQ(profile.replicas.size(), 2U);
  for (const ProfiledReplica& replica : profile.replicas)
    for (const RecordedStep& step : replica.timed)
      EXPECT_EQ(parts_of(step),
                (std::vector<std::string>{"inputs", "wait for data", "copy", "pass",
                                          "wait for data", "copy", "pass", "reduction", "optimizer",
                                          "finish", "read back"}));
  const ProfileTrace trace = make_trace(profile);
  EXPECT_EQ(trace.counts.steps, 2 * (2 + 2));
  EXPECT_EQ(trace.counts.operations, static_cast<int64_t>(profile.operations.operations.size()));
}

TEST(ProfileTraining, MeasuresWhatItCosts) {
  simulate_devices(1);
  ProfileOptions options = short_profile();
  options.steps = 2;
  options.cost_rounds = 1;
  options.limits = true;
  const Profile profile = profile_training(text_config(), options);
  EXPECT_GT(profile.cost.plain, 0);
  EXPECT_GT(profile.cost.timed, 0);
  EXPECT_GT(profile.cost.traced, 0);
  EXPECT_GT(profile.replicas[0].limits.flops, 1e8);
  EXPECT_GT(profile.replicas[0].limits.bytes, 1e8);
}

TEST(ProfileTraining, RefusesWhatCannotBeProfiled) {
  simulate_devices(1);
  Config config = text_config();
  EXPECT_EQ(thrown_by([&] { profile_training(config, {.steps = 0}); }).sentence,
            "a profile of 0 steps was asked for; expected at least 1");
  config.data.train_data.reset();
  EXPECT_EQ(thrown_by([&] { profile_training(config, {}); }).sentence,
            "no training data was given");
  config = text_config();
  config.training.stage = "all";
  EXPECT_EQ(thrown_by([&] { profile_training(config, {}); }).kind, "config");
}

TEST(ProfileTraining, ObservedStepsComputeTheSame) {
  const auto devices = simulate_devices(2);
  Config config = text_config();
  ByteStage stage(config);
  ByteCorpus corpus(*config.data.train_data, byte_gpt_size("tiny").context);
  std::vector<int64_t> sums;
  for (LogicalDevice* device : devices) {
    DeviceScope scope(*device);
    Replica replica(*device, stage.make_learner(*device), config.training, nullptr);
    StepRecorder recorder(*device, Clock::now(), 3);
    const bool observed = device == devices[1];
    for (int64_t step = 1; step <= 3; ++step) {
      Batch batch = corpus.train_batch(7, step, 0, 8);
      batch.rows = batch.whole_rows = 8;
      if (observed) recorder.begin_step(step);
      replica.step({.step = step,
                    .learning_rate = 1e-3,
                    .batch = [&](int64_t) { return &batch; },
                    .observer = observed ? &recorder : nullptr});
      if (observed) recorder.end_step();
    }
    sums.push_back(replica.checksum().item<int64_t>());
    EXPECT_EQ(recorder.take().size(), observed ? 3U : 0U);
  }
  EXPECT_EQ(sums[0], sums[1]);
}

// Steps that run as they are and steps as in a run, of a replica each.
TEST(ProfileTraining, AskingForTheWorkOfKernelsTakesStepsAndFindsNoneWithoutAGpu) {
  LogicalDevice& device = *simulate_devices(1)[0];
  const Config config = text_config();
  const auto stage = make_stage(config, device, /*bad_list=*/"");
  FeedOptions options = feed_options(config.data);
  options.end_batch = 2;
  Feed feed(stage->batches(), device, {&device}, options);
  const std::optional<BatchLease> lease = feed.next(0);
  ASSERT_TRUE(lease);
  std::string failure;
  EXPECT_TRUE(rates_of_training({.device = device,
                                 .stage = *stage,
                                 .training = config.training,
                                 .learning_rate = 1e-3,
                                 .batch = **lease},
                                failure)
                  .empty());
  EXPECT_EQ(failure, "");
  Batch broken = **lease;
  broken.fields.back() = at::zeros({2, 2}, at::kLong);  // of other places than the first
  EXPECT_TRUE(rates_of_training({.device = device,
                                 .stage = *stage,
                                 .training = config.training,
                                 .learning_rate = 1e-3,
                                 .batch = broken},
                                failure)
                  .empty());
  EXPECT_NE(failure, "");
}

}  // namespace tandem::tests
