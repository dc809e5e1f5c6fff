#include "train/rules/early_stop.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {

TEST(EarlyStop, WaitsAsOftenAsItMay) {
  EarlyStop stop({.patience = 2});
  EXPECT_TRUE(stop.validated(10, 3.0));
  EXPECT_FALSE(stop.validated(20, 3.0));
  EXPECT_FALSE(stop.should_stop());
  EXPECT_TRUE(stop.validated(30, 2.9));
  EXPECT_FALSE(stop.validated(40, 3.1));
  EXPECT_FALSE(stop.should_stop());
  EXPECT_FALSE(stop.validated(50, 2.95));
  EXPECT_TRUE(stop.should_stop());
  EXPECT_EQ(stop.state().best, 2.9);
  EXPECT_EQ(stop.state().best_step, 30);
}

TEST(EarlyStop, NeverStopsWithoutPatience) {
  EarlyStop stop({});
  for (int i = 0; i < 100; ++i) stop.validated(i, 1);
  EXPECT_FALSE(stop.should_stop());
}

TEST(EarlyStop, IsNotSatisfiedByCrumbsButByTheirSum) {
  EarlyStop crumbs({.patience = 3, .least_gain = 0.01});
  crumbs.validated(1, 1.0);
  EXPECT_TRUE(crumbs.validated(2, 0.998));  // still the best weights so far
  EXPECT_TRUE(crumbs.validated(3, 0.996));
  EXPECT_FALSE(crumbs.should_stop());
  EXPECT_TRUE(crumbs.validated(4, 0.994));
  EXPECT_TRUE(crumbs.should_stop());

  EarlyStop sum({.patience = 3, .least_gain = 0.01});
  for (int i = 0; i < 20; ++i) {
    sum.validated(i, 1.0 - 0.004 * i);
    EXPECT_FALSE(sum.should_stop()) << i;
  }
}

TEST(EarlyStop, TakesALossThatIsNotFiniteForNoGain) {
  EarlyStop stop({.patience = 1});
  EXPECT_FALSE(stop.validated(1, NAN));
  EXPECT_TRUE(stop.should_stop());
  EXPECT_TRUE(stop.validated(2, 5));
  EXPECT_FALSE(stop.should_stop());
  EXPECT_FALSE(stop.validated(3, -INFINITY));
}

TEST(EarlyStop, GoesOnFromItsState) {
  EarlyStop first({.patience = 2});
  first.validated(1, 1);
  first.validated(2, 2);
  EarlyStop second({.patience = 2}, first.state());
  second.validated(3, 2);
  EXPECT_TRUE(second.should_stop());
}

TEST(EarlyStop, ForgetsWhatCannotBeCompared) {
  EarlyStop stop({.patience = 2});
  EXPECT_TRUE(stop.validated(10, 1.0));
  EXPECT_FALSE(stop.validated(20, 1.5));
  stop.forget_before(25);
  EXPECT_TRUE(stop.validated(30, 2.0)) << "the lowest since then";
  stop.forget_before(25);
  EXPECT_FALSE(stop.validated(40, 2.5)) << "what came after stays";
  EXPECT_FALSE(stop.should_stop());
  EXPECT_EQ(stop.state().best_step, 30);
}

}  // namespace tandem
