#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "observe/profile_making.h"
#include "observe/profile_sections.h"

namespace tandem::tests {

TEST(ProfileCost, IsThatOfTheFastestRounds) {
  const ProfileCost cost =
      cost_of({.plain = {1.4, 1, 1.01}, .timed = {1.02, 3, 1.03}, .traced = {1.5, 1.52, 9}});
  EXPECT_TRUE(cost.told());
  EXPECT_NEAR(cost.timing(), 0.02, 1e-9);
  EXPECT_NEAR(cost.tracing(), 0.5, 1e-9);
  EXPECT_NEAR(cost.noise, 0.02 / 1.5, 1e-9);
}

TEST(ProfileCost, IsNotToldOfAMachineBusyWithOtherThings) {
  // Rounds of one kind differ, or a profiled batch seems to take a third of a plain one.
  const ProfileCost noisy = cost_of({.plain = {1, 1.3}, .timed = {1, 1}, .traced = {1, 1}});
  const ProfileCost faster = cost_of({.plain = {0.915}, .timed = {0.286}, .traced = {0.318}});
  EXPECT_FALSE(noisy.told());
  EXPECT_FALSE(faster.told());
  EXPECT_FALSE(cost_of({}).told());
  Profile profile = made_profile(*simulate_devices(1)[0]);
  profile.cost = noisy;
  EXPECT_NE(profile_text(profile).find("the profiling itself: the machine was too busy to tell; "
                                       "the same step took from 1000.000 ms without it, 1000.000 "
                                       "ms timed, 1000.000 ms traced, and rounds differed by 30 %"),
            std::string::npos);
  const auto json = nlohmann::json::parse(profile_json(profile))["cost"];
  EXPECT_TRUE(json["timing"].is_null());
  EXPECT_NEAR(json["noise"].get<double>(), 0.3, 1e-9);
}

TEST(ProfileCost, RoundsBeginWithAnotherKindEachAndGoOnWhileTheyDiffer) {
  const auto rounds = [](const std::function<double(size_t)>& seconds) {
    std::string calls;
    measure_cost(3, /*cuda=*/false, Clock::now(), [&](bool recorded) {
      calls += recorded ? 'r' : 'p';
      return seconds(calls.size());
    });
    return calls;
  };
  // One to warm up, then plain, timed, traced; timed, traced, plain; traced, plain, timed.
  EXPECT_EQ(rounds([](size_t) { return 1.0; }), "pprrrrprpr");
  EXPECT_EQ(rounds([](size_t call) { return std::pow(2.0, static_cast<double>(call)); }),
            "pprrrrprprprrrrprpr");
}

}  // namespace tandem::tests
