#include "observe/step_line.h"

#include <gtest/gtest.h>

namespace tandem::tests {
namespace {

const StepReport all_known{.step = 7,
                           .total_steps = 10,
                           .loss = 3.14159,
                           .gradient_norm = 0.5,
                           .learning_rate = 1e-3,
                           .tokens_per_second = 210432.4,
                           .wait_share = 0.001,
                           .audio_seconds_per_second = 812,
                           .memory_used = uint64_t{13} << 30,
                           .gpu_utilisation = 0.97};

}  // namespace

TEST(StepLine, ShowsAllThatIsKnown) {
  const double validation = 3.2;
  EXPECT_EQ(step_figures(all_known, &validation),
            "loss 3.1416  val 3.2000  norm 0.50  lr 1.0e-03  210432 tok/s  812 audio-s/s  wait 0.1%"
            "  GPU 97%  13.0 GiB");
}

TEST(StepLine, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(step_figures({.loss = 1, .learning_rate = 2e-4}, nullptr),
            "loss 1.0000  norm 0.00  lr 2.0e-04  0 tok/s  wait 0.0%");
}

TEST(StepLine, SaysThatAStepWasSkipped) {
  EXPECT_EQ(step_figures({.loss = 1, .skipped = "not finite"}, nullptr, 20),
            "loss 1.0000  skipped");
}

TEST(StepLine, OnANarrowTerminalKeepsWhatMattersMost) {
  const double validation = 3.2;
  size_t before = 1000;
  for (size_t columns = 120; columns > 10; --columns) {
    const std::string line = step_figures(all_known, &validation, columns);
    EXPECT_LE(line.size(), columns);
    EXPECT_LE(line.size(), before);
    before = line.size();
  }
  EXPECT_EQ(step_figures(all_known, &validation, 40), "loss 3.1416  val 3.2000  210432 tok/s");
  EXPECT_EQ(step_figures(all_known, &validation, 0), "loss 3.1416");
}

}  // namespace tandem::tests
