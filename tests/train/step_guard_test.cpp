#include "train/rules/step_guard.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {

namespace {

at::Tensor a_norm(double norm) { return at::full({}, norm, at::kFloat); }
bool judged(NormWatch& watch, double norm) { return watch.judge(a_norm(norm)).item<bool>(); }

// Around 3, between 1 and 5.
double usual_norm(int64_t step) {
  return 1 +
         4 * static_cast<double>(counted_below(1000, 1, "norm", 0, static_cast<uint64_t>(step))) /
             1000;
}

}  // namespace

TEST(NormWatch, LeavesOutWhatIsNotFiniteFromTheFirstStep) {
  NormWatch watch({}, at::kCPU);
  EXPECT_FALSE(judged(watch, NAN));
  EXPECT_FALSE(judged(watch, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(judged(watch, 1e30));  // nothing is usual yet
}

TEST(NormWatch, LeavesOutSpikesBesideTheMedian) {
  NormWatch watch({.spike_factor = 10, .window = 50, .least = 20}, at::kCPU);
  for (int64_t step = 0; step < 19; ++step) EXPECT_TRUE(judged(watch, usual_norm(step)));
  EXPECT_TRUE(std::isinf(watch.limit().item<double>()));
  EXPECT_TRUE(judged(watch, 4));
  const double limit = watch.limit().item<double>();
  EXPECT_GT(limit, 20);
  EXPECT_LT(limit, 40);
  EXPECT_FALSE(judged(watch, limit * 1.01));
  EXPECT_FLOAT_EQ(static_cast<float>(watch.limit().item<double>()), static_cast<float>(limit));
  EXPECT_TRUE(judged(watch, limit * 0.99));
  EXPECT_FALSE(judged(watch, 1e9));
  EXPECT_TRUE(judged(watch, 3));
}

TEST(NormWatch, FollowsNormsThatChangeSlowly) {
  NormWatch watch({.spike_factor = 5, .window = 20, .least = 10}, at::kCPU);
  double norm = 1;
  for (int step = 0; step < 200; ++step, norm *= 1.05) EXPECT_TRUE(judged(watch, norm)) << step;
  EXPECT_FALSE(judged(watch, norm * 6));
  for (int step = 0; step < 40; ++step) EXPECT_TRUE(judged(watch, norm / 1000));
  EXPECT_FALSE(judged(watch, norm));
}

TEST(NormWatch, TakesNormsThatStayHighForTheNewUsual) {
  NormWatch watch({.spike_factor = 5, .window = 8, .least = 4, .patience = 3}, at::kCPU);
  const auto judged = [&](double norm) {
    return watch.judge(at::full({}, norm, at::kFloat)).item<bool>();
  };
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(judged(1));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(judged(100)) << i;
  for (int i = 0; i < 8; ++i) {
    // Until half of the memory is of the new kind, each three times are left out.
    int left_out = 0;
    while (!judged(100)) ++left_out;
    EXPECT_LE(left_out, 3);
  }
  EXPECT_TRUE(judged(100));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(judged(INFINITY)) << i;
}

TEST(NormWatch, TakesAnEvenCountsLowerMiddle) {
  NormWatch watch({.spike_factor = 2, .window = 4, .least = 4}, at::kCPU);
  for (const double norm : {4.0, 1.0, 3.0, 2.0}) judged(watch, norm);
  EXPECT_FLOAT_EQ(watch.limit().item<float>(), 4);
}

// A discriminator that starts later has no gradients until then.
TEST(NormWatch, LearnsNothingFromPartsThatDoNotLearnYet) {
  NormWatch watch({.spike_factor = 10, .window = 20, .least = 5}, at::kCPU);
  for (int step = 0; step < 40; ++step) EXPECT_TRUE(judged(watch, 0));
  for (int step = 0; step < 10; ++step) EXPECT_TRUE(judged(watch, 7));
  EXPECT_FALSE(judged(watch, 71));
}

TEST(NormWatch, CanLookForNoSpikes) {
  NormWatch watch({.spike_factor = 0, .least = 1}, at::kCPU);
  for (int step = 0; step < 30; ++step) judged(watch, 1);
  EXPECT_TRUE(judged(watch, 1e30));
  EXPECT_FALSE(judged(watch, NAN));
}

TEST(NormWatch, DecidesTheSameAfterResuming) {
  const StepGuardOptions options{.spike_factor = 3, .window = 10, .least = 5};
  NormWatch whole(options, at::kCPU), first(options, at::kCPU), second(options, at::kCPU);
  for (int64_t step = 0; step < 33; ++step)
    EXPECT_EQ(judged(whole, usual_norm(step)), judged(first, usual_norm(step)));
  NamedTensors saved;
  for (const auto& [name, tensor] : first.state()) saved.emplace_back(name, tensor.clone());
  second.load_state(saved);
  for (int64_t step = 33; step < 60; ++step) {
    const double norm = usual_norm(step) * (step % 7 == 0 ? 4 : 1);
    EXPECT_EQ(judged(whole, norm), judged(second, norm));
    EXPECT_EQ(whole.limit().item<float>(), second.limit().item<float>());
  }
  NormWatch other({.window = 11}, at::kCPU);
  EXPECT_THROW(other.load_state(saved), Error);
}

TEST(NormWatch, LetsAnOptimizerKeepItsWeightsWithoutTheHost) {
  NormWatch watch({}, at::kCPU);
  at::Tensor weight = at::ones({3});
  const at::Tensor updated = at::full({3}, NAN);
  weight.copy_(at::where(watch.judge(a_norm(NAN)), updated, weight));
  EXPECT_TRUE(at::equal(weight, at::ones({3})));
}

TEST(StepGuard, EndsTheRunAfterTooManyBadStepsInARow) {
  StepGuard guard({.max_bad_steps = 3});
  guard.arrived(1, 2.5, 4.25, true);
  guard.arrived(2, NAN, NAN, false);
  EXPECT_EQ(guard.remark(), "step 2 was left out: its gradient is not finite (loss nan)");
  guard.arrived(3, 2.5, 900, false);
  EXPECT_EQ(guard.remark(), "step 3 was left out: its gradient norm is 900, the usual one 4.25");
  guard.arrived(4, 2.5, 4, true);
  EXPECT_EQ(guard.remark(), "");
  EXPECT_EQ(guard.in_a_row(), 0);
  EXPECT_EQ(guard.skipped(), 2);
  guard.arrived(5, 2.5, 900, false);
  guard.arrived(6, 2.5, 900, false);
  try {
    guard.arrived(7, NAN, NAN, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 6);
    EXPECT_EQ(std::string(error.what()),
              "3 steps in a row were left out; the last, step 7, had a gradient that is not "
              "finite, and a loss of nan");
    EXPECT_NE(error.hint().find("training.learning_rate"), std::string::npos);
  }
  EXPECT_EQ(guard.skipped(), 5);
}

TEST(StepGuard, NamesASpike) {
  StepGuard guard({.max_bad_steps = 1});
  guard.arrived(1, 2, 4, true);
  try {
    guard.arrived(2, 2, 1234, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "1 step was left out; the last, step 2, had a gradient norm of 1.23e+03, "
              "the usual one 4");
  }
}

TEST(StepGuard, TellsTheUsualNormAndNotThatOfTheFirstSteps) {
  StepGuard guard({.window = 5});
  guard.arrived(1, 2, 900, false);
  EXPECT_EQ(guard.remark(),
            "step 1 was left out: its gradient norm is 900, 20 times the usual or more");
  guard.arrived(2, 2, 80, true);  // the warm-up's
  for (int64_t step = 3; step < 9; ++step) guard.arrived(step, 2, 0.5 + 0.1 * step, true);
  guard.arrived(9, 2, 30, false);
  EXPECT_EQ(guard.remark(), "step 9 was left out: its gradient norm is 30, the usual one 1.1");
}

}  // namespace tandem
