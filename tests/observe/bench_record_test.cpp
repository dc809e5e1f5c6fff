#include "observe/bench_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "observe/bench_origin.h"

namespace tandem {
namespace {

BenchRecord one_run(double ours, const nlohmann::json& theirs) {
  BenchRecord record;
  record.rows.push_back(
      {.path = {"stages", "mel"},
       .table = "stage",
       .label = "mel",
       .figures = against_peer({.name = "rate", .unit = "clips/s", .values = {ours}}, "peer_rate",
                               theirs)});
  return record;
}

}  // namespace

TEST(BenchRecord, RepetitionsGiveMeanAndSampleDeviation) {
  BenchRecord record = one_run(10, {});
  merge(record, one_run(12, {}));
  merge(record, one_run(17, {}));
  ASSERT_EQ(record.rows.size(), 1u);
  const Figure* rate = record.rows[0].find("rate");
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->values, (std::vector<double>{10, 12, 17}));
  EXPECT_DOUBLE_EQ(rate->mean(), 13);
  EXPECT_DOUBLE_EQ(rate->deviation(), std::sqrt((9.0 + 1 + 16) / 2));
  EXPECT_EQ(one_run(10, {}).rows[0].find("rate")->deviation(), 0);
}

TEST(BenchRecord, ARatioIsThatOfTheMeansAndMissingWithoutAPeer) {
  BenchRecord record = one_run(10, 5);
  merge(record, one_run(30, 15));
  settle(record);
  EXPECT_EQ(record.rows[0].find("ratio")->values, std::vector<double>{2});
  settle(record);  // again: nothing piles up
  EXPECT_EQ(record.rows[0].find("ratio")->values, std::vector<double>{2});
  BenchRecord alone = one_run(10, {});
  settle(alone);
  EXPECT_TRUE(alone.rows[0].find("ratio")->values.empty());
  EXPECT_TRUE(alone.rows[0].find("peer_rate")->values.empty());
}

TEST(BenchRecord, ARatioOfTimesSaysHowManyTimesFasterToo) {
  BenchRecord record;
  record.rows.push_back(
      {.figures = against_peer({.name = "ms", .unit = "ms", .better = Better::lower, .values = {2}},
                               "peer_ms", 8)});
  settle(record);
  EXPECT_EQ(record.rows[0].find("ratio")->values, std::vector<double>{4});
}

TEST(BenchRecord, CombinationsStandSideBySideAndNewRowsAreKept) {
  BenchRecord small = one_run(10, {}), big = one_run(20, {});
  mark(small, {{"batch_size", "8"}});
  mark(big, {{"batch_size", "16"}});
  BenchRecord all;
  append(all, small);
  append(all, big);
  ASSERT_EQ(all.rows.size(), 2u);
  EXPECT_EQ(all.rows[1].parameters, (Parameters{{"batch_size", "16"}}));
  BenchRecord other = one_run(1, {});
  other.rows[0].label = "decode";
  BenchRecord merged = one_run(10, {});
  merge(merged, other);
  ASSERT_EQ(merged.rows.size(), 2u);
  EXPECT_EQ(merged.rows[0].find("rate")->values.size(), 1u);
}

TEST(BenchOrigin, NamesTheMachineTheDayAndTheCommit) {
  const BenchOrigin origin = bench_origin();
  EXPECT_EQ(origin.date.size(), std::string("2026-11-15T12:00:00Z").size());
  EXPECT_EQ(origin.date.back(), 'Z');
  EXPECT_GE(origin.cores, 1);
  EXPECT_GT(origin.memory, 1 << 28);
  EXPECT_NE(origin.machine().find(origin.cpu), std::string::npos);
  // A checkout of the sources has a commit; an unpacked archive has none.
  EXPECT_TRUE(origin.commit.empty() || origin.commit.find_first_not_of("0123456789abcdef") >= 12)
      << origin.commit;
}

}  // namespace tandem
