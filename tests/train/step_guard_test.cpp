#include "train/rules/step_guard.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tandem/config.h"
#include "tandem/error.h"

namespace tandem {

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

// Every second step a spike is no training, however few of them are in a row.
TEST(StepGuard, EndsARunWhoseSpikesComeAgainAndAgain) {
  StepGuard guard({.max_bad_steps = 3});
  guard.arrived(1, 2.5, 4.25, true);
  guard.arrived(2, 2.5, 900, false);
  for (int64_t step = 3; step < 13; ++step) guard.arrived(step, 2.5, 4.25, true);
  guard.arrived(13, 2.5, 900, false);
  guard.arrived(14, 2.5, 4.25, true);
  guard.arrived(15, 2.5, 900, false);
  guard.arrived(16, 2.5, 900, true);  // made up for, all but one of them
  try {
    guard.arrived(17, 2.5, 800, false);
    guard.arrived(18, 2.5, 900, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 6);
    EXPECT_EQ(std::string(error.what()),
              "spikes come again and again, 5 steps were left out; the last, step 18, had a "
              "gradient norm of 900, the usual one 4.25");
  }
}

// A scale that is far too high comes down by one step left out after another.
TEST(StepGuard, AllowsHalfPrecisionToFindItsScale) {
  TrainingConfig training{.max_bad_steps = 10};
  EXPECT_EQ(bad_steps_allowed(training), 10);
  training.precision = "fp16";
  EXPECT_EQ(bad_steps_allowed(training), 34) << "24 halvings from 2^24 to 1";
}

TEST(StepGuard, KnowsTheLastBadStep) {
  StepGuard guard({});
  EXPECT_EQ(guard.last_bad(), 0);
  guard.arrived(4, 2, NAN, false);
  guard.arrived(5, 2, 1, true);
  EXPECT_EQ(guard.last_bad(), 4);
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
