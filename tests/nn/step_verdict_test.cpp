#include "nn/step_verdict.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "util/counted_random.h"

namespace tandem::tests {

namespace {

struct Watched {
  VerdictRule rule;
  VerdictMemory memory;
  explicit Watched(const VerdictRule& given, int64_t window = 100)
      : rule(given), memory(at::kCPU, window) {}
  bool judges(double norm) { return judge_norm(static_cast<float>(norm), memory, rule); }
  double limit() const { return spike_limit(memory, rule); }
};

// Around 3, between 1 and 5.
double usual_norm(int64_t step) {
  return 1 +
         4 * static_cast<double>(counted_below(1000, 1, "norm", 0, static_cast<uint64_t>(step))) /
             1000;
}

}  // namespace

TEST(StepVerdict, LeavesOutWhatIsNotFiniteFromTheFirstStep) {
  Watched watch({});
  EXPECT_FALSE(watch.judges(NAN));
  EXPECT_FALSE(watch.judges(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(watch.judges(1e30));  // nothing is usual yet
}

TEST(StepVerdict, LeavesOutSpikesBesideTheMedian) {
  Watched watch({.spike_factor = 10, .least = 20}, 50);
  for (int64_t step = 0; step < 19; ++step) EXPECT_TRUE(watch.judges(usual_norm(step)));
  EXPECT_TRUE(std::isinf(watch.limit()));
  EXPECT_TRUE(watch.judges(4));
  const double limit = watch.limit();
  EXPECT_GT(limit, 20);
  EXPECT_LT(limit, 40);
  EXPECT_FALSE(watch.judges(limit * 1.01));
  EXPECT_EQ(watch.limit(), limit);
  EXPECT_TRUE(watch.judges(limit * 0.99));
  EXPECT_FALSE(watch.judges(1e9));
  EXPECT_TRUE(watch.judges(3));
}

TEST(StepVerdict, FollowsNormsThatChangeSlowly) {
  Watched watch({.spike_factor = 5, .least = 10}, 20);
  double norm = 1;
  for (int step = 0; step < 200; ++step, norm *= 1.05) EXPECT_TRUE(watch.judges(norm)) << step;
  EXPECT_FALSE(watch.judges(norm * 6));
  for (int step = 0; step < 40; ++step) EXPECT_TRUE(watch.judges(norm / 1000));
  EXPECT_FALSE(watch.judges(norm));
}

TEST(StepVerdict, TakesNormsThatStayHighForTheNewUsual) {
  Watched watch({.spike_factor = 5, .least = 4, .patience = 3}, 8);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(watch.judges(1));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(watch.judges(100)) << i;
  EXPECT_TRUE(watch.judges(100));
  EXPECT_TRUE(std::isinf(watch.limit())) << "what was usual before is forgotten";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(watch.judges(100)) << i;
  EXPECT_FLOAT_EQ(static_cast<float>(watch.limit()), 500);
  EXPECT_TRUE(watch.judges(1));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(watch.judges(INFINITY)) << i;
}

// One in ten may be; more than that, for long, is no training any more.
TEST(StepVerdict, SpikesThatComeAgainAndAgainEndARun) {
  Watched seldom({.spike_factor = 5, .least = 4, .most_bad = 3}, 8), often = seldom;
  often.memory = VerdictMemory(at::kCPU, 8);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(seldom.judges(1) && often.judges(1));
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(seldom.judges(100)) << i;
    for (int good = 0; good < 10; ++good) EXPECT_TRUE(seldom.judges(1)) << i;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(often.judges(100)) << i;
    EXPECT_TRUE(often.judges(1)) << i;
  }
  EXPECT_FALSE(often.judges(100));  // 3 * 10 - 3 + 10 is the limit of 30
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(often.judges(1)) << i;
}

// The host hears of them some steps later: until then nothing may move.
TEST(StepVerdict, TakesNoStepBehindTooManyBadOnes) {
  Watched watch({.most_bad = 3});
  for (const float norm : {1.0f, NAN, NAN, 1.0f, NAN, NAN})
    EXPECT_EQ(watch.judges(norm), norm == 1);
  EXPECT_TRUE(watch.judges(2)) << "two in a row are not too many";
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(watch.judges(NAN));
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(watch.judges(1)) << i;
}

// The run that goes on with the step that ended one begins with what is kept.
TEST(StepVerdict, TheStepThatEndsARunIsLeftOutAgain) {
  Watched watch({.spike_factor = 5, .least = 4, .patience = 3, .most_bad = 3}, 8);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(watch.judges(1));
  for (int i = 0; i < 3 + 8; ++i) EXPECT_FALSE(watch.judges(100)) << i;
  watch.memory.bad.zero_();  // is not kept
  EXPECT_FALSE(watch.judges(100));
}

TEST(StepVerdict, TakesAnEvenCountsLowerMiddle) {
  Watched watch({.spike_factor = 2, .least = 4}, 4);
  for (const double norm : {4.0, 1.0, 3.0, 2.0}) watch.judges(norm);
  EXPECT_FLOAT_EQ(static_cast<float>(watch.limit()), 4);
}

// A discriminator that starts later has no gradients until then.
TEST(StepVerdict, LearnsNothingFromPartsThatDoNotLearnYet) {
  Watched watch({.spike_factor = 10, .least = 5}, 20);
  for (int step = 0; step < 40; ++step) EXPECT_TRUE(watch.judges(0));
  for (int step = 0; step < 10; ++step) EXPECT_TRUE(watch.judges(7));
  EXPECT_FALSE(watch.judges(71));
}

// Or the moments, still zero, would be taken for corrected when its first gradient comes.
TEST(StepVerdict, APartWithoutGradientsTakesNoStep) {
  VerdictMemory memory(at::kCPU);
  const VerdictRule rule{.beta1 = 0.5, .beta2 = 0.75};
  at::Tensor values = at::zeros({adamw_values});
  const at::Tensor rate = at::full({}, 0.125), divisor = at::full({}, 1.0);
  for (int step = 0; step < 40; ++step) {
    const at::Tensor outcome = decide_step({at::zeros({64})}, rate, divisor, memory, rule, values);
    EXPECT_EQ(outcome[1].item<float>(), 1) << "nothing is wrong with it";
    EXPECT_EQ(values[adamw_good].item<float>(), 0);
  }
  decide_step({at::full({64}, 0.5)}, rate, divisor, memory, rule, values);
  EXPECT_EQ(values[adamw_good].item<float>(), 1);
  EXPECT_EQ(values[adamw_correction1].item<float>(), 0.5f);
  EXPECT_EQ(values[adamw_correction2].item<float>(), 0.25f);
  decide_step({at::zeros({64})}, rate, divisor, memory, rule, values);
  EXPECT_EQ(memory.steps.item<double>(), 2) << "behind its first one every step counts";
}

TEST(StepVerdict, CanLookForNoSpikes) {
  Watched watch({.spike_factor = 0, .least = 1});
  for (int step = 0; step < 30; ++step) watch.judges(1);
  EXPECT_TRUE(watch.judges(1e30));
  EXPECT_FALSE(watch.judges(NAN));
}

TEST(StepVerdict, DecidesTheSameAfterResuming) {
  const VerdictRule rule{.spike_factor = 3, .least = 5};
  Watched whole(rule, 10), first(rule, 10), second(rule, 10);
  for (int64_t step = 0; step < 33; ++step)
    EXPECT_EQ(whole.judges(usual_norm(step)), first.judges(usual_norm(step)));
  second.memory.norms.copy_(first.memory.norms);
  second.memory.count.copy_(first.memory.count);
  second.memory.spikes.copy_(first.memory.spikes);
  for (int64_t step = 33; step < 60; ++step) {
    const double norm = usual_norm(step) * (step % 7 == 0 ? 4 : 1);
    EXPECT_EQ(whole.judges(norm), second.judges(norm));
    EXPECT_EQ(whole.limit(), second.limit());
  }
}

TEST(StepVerdict, GivesTheNumbersOfAStep) {
  VerdictMemory memory(at::kCPU);
  const VerdictRule rule{.beta1 = 0.5, .beta2 = 0.75, .average_decay = 0.99, .largest_norm = 2};
  at::Tensor values = at::zeros({adamw_values});
  at::Tensor wrong = at::full({64}, 0.25f);
  const std::vector<at::Tensor> gradients = {at::full({64}, 1.5), at::zeros({0}),
                                             at::full({64}, 2, at::kBFloat16)};
  const at::Tensor rate = at::full({}, 0.125), divisor = at::full({}, 2.0);
  for (int step = 1; step < 3; ++step) {
    const at::Tensor outcome = decide_step(gradients, rate, divisor, memory, rule, values);
    EXPECT_EQ(outcome[0].item<float>(), 10);  // 8 sqrt(1.5² + 2²) / 2
    EXPECT_EQ(outcome[1].item<float>(), 1);
    EXPECT_EQ(values[adamw_learning_rate].item<float>(), 0.125f);
    EXPECT_EQ(values[adamw_correction1].item<float>(), step == 1 ? 0.5f : 0.75f);
    EXPECT_EQ(values[adamw_correction2].item<float>(), step == 1 ? 0.25f : 0.4375f);
    EXPECT_FLOAT_EQ(values[adamw_factor].item<float>(), 0.1f);
    EXPECT_FLOAT_EQ(values[adamw_average].item<float>(),
                    static_cast<float>((step + 1.0) / (step + 10.0)));
    EXPECT_EQ(values[adamw_good].item<float>(), 1);
  }
  wrong[3] = NAN;
  EXPECT_EQ(decide_step({wrong}, rate, divisor, memory, rule, values)[1].item<float>(), 0);
  EXPECT_EQ(values[adamw_good].item<float>(), 0);
  EXPECT_EQ(memory.steps.item<double>(), 2);
}

}  // namespace tandem::tests
