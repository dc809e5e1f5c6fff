#include "observe/profile_summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "observe/profile_making.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

const PartRow& row(const StepFigures& figures, const std::string& name) {
  for (const PartRow& part : figures.parts)
    if (part.name == name) return part;
  ADD_FAILURE() << "no part `" << name << "`";
  return figures.parts.front();
}

}  // namespace

TEST(ProfileSummary, PartsAddUpToTheStepWithWhatNoneAccountsFor) {
  const Profile profile = made_profile(*simulate_devices(1)[0]);
  const StepFigures figures = step_figures_of(profile, profile.replicas[0]);
  std::vector<std::string> names;
  double sum = 0;
  for (const PartRow& part : figures.parts) {
    names.push_back(part.name);
    sum += part.seconds;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"wait for data", "pass discriminator",
                                      "pass discriminator, piece 2", "optimizer discriminator",
                                      "pass generator", "read back", "not accounted for"}));
  EXPECT_NEAR(sum, figures.mean, 1e-12);
  EXPECT_NEAR(figures.mean, 0.1, 1e-9);
  EXPECT_NEAR(figures.wall, 0.1, 1e-9);
  EXPECT_NEAR(figures.accounted, 0.98, 1e-9);
  EXPECT_NEAR(row(figures, "wait for data").seconds, 0.02, 1e-9);
  EXPECT_NEAR(row(figures, "wait for data").deviation, 0.01 * std::sqrt(2), 1e-9);
  EXPECT_NEAR(row(figures, "pass generator").share, 0.2, 1e-9);
  EXPECT_NEAR(row(figures, "not accounted for").seconds, 0.002, 1e-9);
}

TEST(ProfileSummary, APartThatComesInSomeStepsOnlyIsNothingInTheOthers) {
  Profile profile = made_profile(*simulate_devices(1)[0]);
  auto& parts = profile.replicas[0].timed[1].parts;
  parts.push_back(made_part(StepPart::reduction, 1, 0, 1.19, 1.192, 0));
  const StepFigures figures = step_figures_of(profile, profile.replicas[0]);
  EXPECT_NEAR(row(figures, "reduction generator").seconds, 0.001, 1e-9);
}

TEST(ProfileSummary, OperationsGoByTheirOwnTimeAndTheirShareOfTheLimit) {
  const Profile profile = made_profile(*simulate_devices(1)[0]);
  const auto rows = operation_rows(profile, 0);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].name, "aten::mm");
  EXPECT_NEAR(rows[1].seconds, 0.01, 1e-9);
  EXPECT_NEAR(rows[1].share, 0.1, 1e-9);
  EXPECT_NEAR(rows[1].flops, 2e8, 1);
  EXPECT_NEAR(rows[1].limit, 0.2, 1e-9);  // 2e8 of 1e9 FLOP/s; 1e7 of 1e8 B/s are less
  EXPECT_EQ(rows[0].name, "aten::linear");
  EXPECT_EQ(rows[0].limit, 0);
  const auto beside = feed_rows(profile);
  ASSERT_EQ(beside.size(), 1U);
  EXPECT_EQ(beside[0].name, "aten::copy_");
}

TEST(ProfileSummary, KernelsOfOneNameCountTogether) {
  LogicalDevice& device = *simulate_devices(1)[0];
  Profile profile = made_profile(device);
  const int index = device.info().cuda_index;
  profile.kernels.kernels = {
      {.name = "void f<1>(int)", .cuda_device = index, .start = 1.30, .end = 1.31},
      {.name = "void f<2>(int)", .cuda_device = index, .start = 1.31, .end = 1.33},
      {.name = "other", .cuda_device = index + 1, .start = 1.31, .end = 1.33},
      {.name = "Memcpy DtoD",
       .cuda_device = index,
       .start = 1.33,
       .end = 1.34,
       .bytes = 1e5,
       .copies = true}};
  const auto rows = kernel_rows(profile, 0);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "f");
  EXPECT_EQ(rows[0].calls, 2);
  EXPECT_NEAR(rows[0].seconds, 0.03, 1e-9);
  EXPECT_NEAR(rows[1].limit, 2e5 / 0.01 / 1e8, 1e-9);
}

TEST(ProfileSummary, TextAndJsonSayTheSame) {
  Profile profile = made_profile(*simulate_devices(1)[0]);
  profile.cost = {.plain = 0.1, .timed = 0.101, .traced = 0.12};
  profile.kernels.failure = "the driver said no";
  const std::string text = profile_text(profile);
  EXPECT_TRUE(contains(text, "stage decoder, 8 rows: 100.000 ms a step ± 0.000")) << text;
  EXPECT_TRUE(contains(text, "copies to the model: 20.000 ms, 50.0 % of it while")) << text;
  EXPECT_TRUE(contains(text, "kernels could not be traced: the driver said no")) << text;
  EXPECT_TRUE(contains(text, "100.000 ms without it, +1.0 % timed, +20.0 % traced")) << text;
  const auto json = nlohmann::json::parse(profile_json(profile));
  const auto& replica = json["replicas"][0];
  EXPECT_NEAR(replica["step_ms"].get<double>(), 100, 1e-6);
  EXPECT_NEAR(replica["accounted"].get<double>(), 0.98, 1e-9);
  EXPECT_EQ(replica["memory"]["parts"]["weights"], 600);
  EXPECT_EQ(replica["memory"]["largest_rise"], 4000);
  EXPECT_EQ(replica["operations"].size(), 2U);
  EXPECT_NEAR(json["overlap"]["copies"]["share"].get<double>(), 0.5, 1e-6);
  EXPECT_NEAR(json["cost"]["timing"].get<double>(), 0.01, 1e-9);
  EXPECT_EQ(json["kernels_failure"], "the driver said no");
}

}  // namespace tandem::tests
