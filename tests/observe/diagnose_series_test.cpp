#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "observe/diagnose/series.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

double noise(uint64_t id, uint64_t count) {
  return static_cast<double>(counted_draw(5, "noise", id, count) >> 11) * 0x1p-53 - 0.5;
}

std::vector<double> made_series(size_t count, double (*value)(size_t)) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(value(i));
  return values;
}

}  // namespace

TEST(DiagnoseSeries, HundredAndFiftyInTurnHaveThePeriodTwo) {
  const SeriesFigures series =
      analyse_series(made_series(50, [](size_t i) { return i % 2 ? 0.050 : 0.100; }));
  EXPECT_EQ(series.period, 2U);
  EXPECT_NEAR(series.swing, 0.050 / 0.075, 0.05);
  EXPECT_EQ(series.count, 40U);
}

TEST(DiagnoseSeries, ThePeriodShowsThroughNoise) {
  const SeriesFigures series = analyse_series(
      made_series(60, [](size_t i) { return (i % 5 == 0 ? 0.120 : 0.050) + 0.015 * noise(1, i); }));
  EXPECT_EQ(series.period, 5U);
}

TEST(DiagnoseSeries, ASteadyOneHasNone) {
  EXPECT_EQ(analyse_series(std::vector<double>(50, 0.080)).period, 0U);
  // The last digits of a clock may take turns.
  const auto nearly = made_series(50, [](size_t i) { return i % 2 ? 0.0800 : 0.0802; });
  EXPECT_EQ(analyse_series(nearly).period, 0U);
}

TEST(DiagnoseSeries, NoiseHasNone) {
  for (uint64_t id = 0; id < 200; ++id) {
    std::vector<double> values;
    for (uint64_t i = 0; i < 50; ++i) values.push_back(0.080 + 0.060 * noise(id, i));
    EXPECT_EQ(analyse_series(values).period, 0U) << id;
  }
}

TEST(DiagnoseSeries, ADriftAndALonelySpikeHaveNone) {
  const auto drift =
      made_series(60, [](size_t i) { return 0.050 + 0.001 * static_cast<double>(i); });
  EXPECT_EQ(analyse_series(drift).period, 0U);
  const auto spikes = made_series(60, [](size_t i) { return i == 21 || i == 28 ? 0.4 : 0.050; });
  EXPECT_EQ(analyse_series(spikes).period, 0U);
}

TEST(DiagnoseSeries, TheFirstBatchesAreNotCounted) {
  auto values = made_series(50, [](size_t) { return 0.010; });
  for (size_t i = 0; i < 10; ++i) values[i] = 5;
  const SeriesFigures series = analyse_series(values);
  EXPECT_DOUBLE_EQ(series.mean, 0.010);
  EXPECT_DOUBLE_EQ(series.highest, 0.010);
  EXPECT_NEAR(series.deviation, 0, 1e-12);
  EXPECT_EQ(series.period, 0U);
  EXPECT_EQ(warm_up_of(1000), 20U);
}

TEST(DiagnoseSeries, MedianDeviationAndTails) {
  std::vector<double> values;
  for (int i = 1; i <= 101; ++i) values.push_back(i);
  const SeriesFigures series = analyse_series(values, 0);
  EXPECT_DOUBLE_EQ(series.median, 51);
  EXPECT_DOUBLE_EQ(series.p95, 96);
  EXPECT_DOUBLE_EQ(series.p99, 100);
  EXPECT_NEAR(series.deviation, std::sqrt(101.0 * 102 / 12), 1e-9);
  EXPECT_EQ(analyse_series(std::vector<double>{}, 3).count, 0U);
  EXPECT_DOUBLE_EQ(analyse_series(std::vector<double>{2}, 0).median, 2);
}

}  // namespace tandem
