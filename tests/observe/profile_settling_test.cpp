// Steps before the timed ones: a graph that is captured among those would be most of their time.
#include <gtest/gtest.h>

#include "observe/profile_sections.h"

namespace tandem::tests {
namespace {

// A corpus whose batches have `shapes` shapes in turn, each run as it is, captured, then replayed.
struct ShapesInTurn {
  int64_t shapes = 1;
  int64_t steps = 0, unsettled = 0;
  void take(int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      if (steps++ < 2 * shapes) ++unsettled;
  }
};

int64_t settle_on(ShapesInTurn& corpus, const Settling& settling) {
  return settle_steps(
      settling, [&] { return corpus.unsettled; }, [&](int64_t count) { corpus.take(count); });
}

}  // namespace

TEST(ProfileSettling, GoesOnUntilEveryShapeIsReplayed) {
  for (const int64_t shapes : {1, 8, 20}) {
    ShapesInTurn corpus{.shapes = shapes};
    const int64_t steps = settle_on(corpus, {});
    EXPECT_EQ(steps, corpus.steps);
    const int64_t before = corpus.unsettled;
    corpus.take(40);
    EXPECT_EQ(corpus.unsettled, before) << shapes << " shapes after " << steps << " steps";
    EXPECT_LE(steps, 2 * shapes + 2 * Settling{}.quiet);
  }
}

TEST(ProfileSettling, EndsWhereShapesNeverDo) {
  ShapesInTurn corpus{.shapes = 1'000'000};
  EXPECT_EQ(settle_on(corpus, {.quiet = 10, .most_steps = 50}), 50);
  EXPECT_EQ(settle_on(corpus, {.quiet = 10, .most_steps = 50, .most_seconds = 0}), 0);
}

}  // namespace tandem::tests
