#include "train/rules/schedule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "checkpoint/safetensors.h"
#include "tandem/config.h"
#include "tandem/error.h"

namespace tandem {

namespace {

constexpr double peak = 3e-4;

void expect_as_torch(const std::string& name, const ScheduleOptions& options, int64_t total) {
  const auto file =
      read_safetensors(TANDEM_SOURCE_DIR "/tests/train/fixtures/schedule.safetensors");
  const at::Tensor expected = file.tensors.at(name);
  ASSERT_GE(expected.numel(), 30);
  for (int64_t step = 1; step <= expected.numel(); ++step) {
    EXPECT_NEAR(learning_rate_at(options, step, total), expected[step - 1].item<double>(),
                1e-12 * peak)
        << name << " at step " << step;
  }
}

std::string milestone_refusal(const std::string& text) {
  try {
    parse_milestones(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  ADD_FAILURE() << "`" << text << "` was accepted";
  return "";
}

const std::vector<std::string> shapes = {"constant", "cosine", "restarts", "noam", "multistep"};

}  // namespace

TEST(Schedule, IsThatOfTorchsSchedulers) {
  expect_as_torch("restarts", {.shape = "restarts", .peak = peak, .lowest = 0.1, .first_cycle = 7},
                  0);
  expect_as_torch("cosine", {.shape = "cosine", .peak = peak, .lowest = 0.1}, 80);
  expect_as_torch("multistep", {.shape = "multistep", .peak = peak, .milestones = {5, 11, 30}}, 0);
  expect_as_torch("noam", {.shape = "noam", .peak = peak, .warmup_steps = 25}, 0);
  expect_as_torch("warmup", {.shape = "constant", .peak = peak, .warmup_steps = 10}, 0);
}

// The originals' restarts became NaN after some ten thousand steps.
TEST(Schedule, IsFiniteAndBetweenZeroAndThePeakWhateverItIsAsked) {
  const int64_t largest = std::numeric_limits<int64_t>::max();
  for (const std::string& shape : shapes) {
    for (const int64_t cycle : {int64_t{1}, int64_t{3}, int64_t{5000}, largest, int64_t{0}}) {
      for (const int64_t warmup : {int64_t{0}, int64_t{1}, int64_t{1500}, largest}) {
        for (const int64_t total : {int64_t{0}, int64_t{1}, int64_t{40000}, largest}) {
          const ScheduleOptions options{.shape = shape,
                                        .peak = peak,
                                        .warmup_steps = warmup,
                                        .lowest = 0,
                                        .first_cycle = cycle,
                                        .milestones = {10, 100},
                                        .milestone_unit = static_cast<double>(cycle)};
          for (const int64_t step : {int64_t{-5}, int64_t{0}, int64_t{1}, int64_t{2},
                                     int64_t{31500}, int64_t{41500}, int64_t{1} << 40, largest}) {
            const double rate = learning_rate_at(options, step, total);
            EXPECT_TRUE(std::isfinite(rate) && rate >= 0 && rate <= peak * (1 + 1e-12))
                << shape << " cycle " << cycle << " warmup " << warmup << " total " << total
                << " step " << step << ": " << rate;
          }
        }
      }
    }
  }
}

TEST(Schedule, HasNoJumpsButWhereACycleOrAMilestoneEnds) {
  for (const std::string& shape : shapes) {
    const ScheduleOptions options{.shape = shape,
                                  .peak = peak,
                                  .warmup_steps = 50,
                                  .first_cycle = 100,
                                  .milestones = {333, 600}};
    int jumps = 0;
    for (int64_t step = 1; step < 1000; ++step) {
      const double change =
          learning_rate_at(options, step + 1, 1000) - learning_rate_at(options, step, 1000);
      if (std::abs(change) > peak / 40) ++jumps;
    }
    // Cycles end 100, 300 and 700 steps behind the warm-up.
    EXPECT_EQ(jumps, shape == "restarts" ? 3 : shape == "multistep" ? 2 : 0) << shape;
  }
}

TEST(Schedule, KnowsItsCorners) {
  const auto at_step = [](const std::string& shape, int64_t step) {
    return learning_rate_at({.shape = shape,
                             .peak = 1,
                             .warmup_steps = 10,
                             .lowest = 0.25,
                             .first_cycle = 20,
                             .milestones = {15}},
                            step, 110);
  };
  for (const std::string& shape : shapes) {
    EXPECT_EQ(at_step(shape, 0), 0) << shape;
    EXPECT_DOUBLE_EQ(at_step(shape, 5), 0.5) << shape;
    EXPECT_EQ(at_step(shape, 10), 1) << shape;
  }
  EXPECT_DOUBLE_EQ(at_step("cosine", 60), 0.625);
  EXPECT_DOUBLE_EQ(at_step("cosine", 110), 0.25);
  EXPECT_DOUBLE_EQ(at_step("cosine", 5000), 0.25);
  EXPECT_DOUBLE_EQ(at_step("restarts", 20), 0.625);  // in the middle of the first
  EXPECT_EQ(at_step("restarts", 30), 1);             // the second begins, 40 steps long
  EXPECT_DOUBLE_EQ(at_step("restarts", 50), 0.625);
  EXPECT_EQ(at_step("restarts", 70), 1);
  EXPECT_DOUBLE_EQ(at_step("noam", 40), 0.5);
  EXPECT_EQ(at_step("multistep", 15), 1);
  EXPECT_EQ(at_step("multistep", 16), 0.5);
}

TEST(Schedule, CountsCoquisMilestonesInEpochs) {
  TrainingConfig training{.learning_rate = 1, .milestones = "2,3", .compat = "coqui"};
  const ScheduleOptions options = schedule_options(training, 100);
  EXPECT_EQ(options.shape, "multistep");
  EXPECT_EQ(learning_rate_at(options, 200, 0), 1);
  EXPECT_EQ(learning_rate_at(options, 201, 0), 0.5);
  EXPECT_EQ(learning_rate_at(options, 301, 0), 0.25);
  // 167 batches, 84 a step: two epochs end within the fourth step, three with it.
  const ScheduleOptions uneven = schedule_options(training, 167.0 / 84);
  EXPECT_EQ(learning_rate_at(uneven, 4, 0), 1);
  EXPECT_EQ(learning_rate_at(uneven, 5, 0), 0.5);
  EXPECT_EQ(learning_rate_at(uneven, 6, 0), 0.5);
  EXPECT_EQ(learning_rate_at(uneven, 7, 0), 0.25);
  training.milestones = "900000,2700000,5400000";  // Coqui's own: constant in practice
  EXPECT_EQ(learning_rate_at(schedule_options(training, 100), 5000000, 0), 1);
  training.compat = "none";
  training.schedule = "multistep";
  EXPECT_EQ(learning_rate_at(schedule_options(training, 100), 5400001, 0), 0.125);
}

TEST(Schedule, TakesItsValuesFromTheSettings) {
  const TrainingConfig training{.learning_rate = 2,
                                .schedule = "restarts",
                                .warmup_steps = 3,
                                .final_learning_rate = 0.5,
                                .restart_steps = 7,
                                .milestones = "wrong, but nobody asks"};
  const ScheduleOptions options = schedule_options(training, 0);
  EXPECT_EQ(options.shape, "restarts");
  EXPECT_EQ(options.peak, 2);
  EXPECT_EQ(options.warmup_steps, 3);
  EXPECT_EQ(options.lowest, 0.5);
  EXPECT_EQ(options.first_cycle, 7);
}

TEST(Schedule, NamesTheMilestoneThatIsNone) {
  EXPECT_EQ(parse_milestones(" 5, 900000 "), (std::vector<int64_t>{5, 900000}));
  EXPECT_TRUE(parse_milestones("").empty());
  EXPECT_EQ(
      milestone_refusal("5,9e5"),
      "`9e5` in `training.milestones` (`5,9e5`) is no step; expected whole numbers from 1, as "
      "in `900000,2700000`");
  EXPECT_NE(milestone_refusal("5,,7").find("`` in"), std::string::npos);
  EXPECT_NE(milestone_refusal("0").find("`0` in"), std::string::npos);
  EXPECT_EQ(milestone_refusal("7,5"),
            "`5` in `training.milestones` (`7,5`) does not come after `7`; expected rising steps");
}

TEST(Schedule, RefusesAShapeThatDoesNotExist) {
  try {
    learning_rate_at({.shape = "cosinus"}, 1, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "there is no schedule `cosinus`; expected constant, cosine, restarts, noam or "
              "multistep");
  }
}

}  // namespace tandem
