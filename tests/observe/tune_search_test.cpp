#include "observe/tune_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tandem {
namespace {

// A made-up device: memory grows along a line, speed saturates, every reading is off by a little.
struct MadeDevice {
  double limit = 1e9, fixed = 3e8, a_clip = 1e7;
  double half_at = 8;  // the batch at which half the speed is reached
  double noise = 0;    // share
  double cliff = 0;    // above this batch it is half as fast; 0: nowhere
  std::map<int64_t, int> asked;

  TuneReading operator()(int64_t batch) {
    ++asked[batch];
    const auto clips = static_cast<double>(batch);
    TuneReading reading{
        .outcome = ProbeOutcome::fits, .peak_bytes = fixed + a_clip * clips, .limit_bytes = limit};
    reading.speed = 1000 * clips / (clips + half_at);
    if (cliff > 0 && clips > cliff) reading.speed /= 2;
    reading.speed *= 1 + noise * std::sin(12.9898 * clips + 4.1);
    if (limit > 0 && reading.peak_bytes > limit) reading = {.outcome = ProbeOutcome::out_of_memory};
    return reading;
  }
};

bool never() { return false; }

BatchChoice search_on(MadeDevice& device, BatchSearch search) {
  return search_batch(
      search, [&](int64_t batch) { return device(batch); }, never);
}

}  // namespace

TEST(TuneSearch, FindsTheLargestBatchThatLeavesAnEighthFreeInFewProbes) {
  for (const int64_t first : {1, 16, 57, 300}) {
    MadeDevice device;  // 0.875e9 - 3e8 = 57.5 clips
    const BatchChoice choice = search_on(device, {.first = first, .speed_counts = false});
    EXPECT_EQ(choice.batch, choice.largest) << first;
    EXPECT_LE(choice.batch, 57) << first;
    EXPECT_GE(choice.batch, 54) << first;
    EXPECT_LE(choice.probes, 6) << first;
    for (const auto& [batch, times] : device.asked) EXPECT_EQ(times, 1) << batch;
  }
}

TEST(TuneSearch, TheByteModelAloneIsNotBelievedWhenItIsWrong) {
  for (const double wrong : {0.25, 4.0}) {
    MadeDevice device;
    const BatchChoice choice = search_on(device, {.first = 16,
                                                  .fixed_bytes = device.fixed,
                                                  .bytes_a_clip = wrong * device.a_clip,
                                                  .speed_counts = false});
    EXPECT_LE(choice.batch, 57);
    EXPECT_GE(choice.batch, 54);
    EXPECT_LE(choice.probes, 7);
  }
}

TEST(TuneSearch, NoiseOfThreePercentDoesNotMakeASmallBatchLookFaster) {
  MadeDevice device{.noise = 0.03};
  const BatchChoice choice = search_on(device, {.first = 16, .tolerance = 0.07});
  EXPECT_GE(choice.batch, 54);
  EXPECT_LE(choice.probes, 8);
}

TEST(TuneSearch, ASmallerBatchThatIsClearlyFasterIsTaken) {
  MadeDevice device{.noise = 0.02, .cliff = 30};
  const BatchChoice choice = search_on(device, {.first = 16});
  EXPECT_LE(choice.batch, 30);
  EXPECT_GE(choice.batch, 14);
  EXPECT_GE(choice.largest, 54);
}

TEST(TuneSearch, WithoutALimitTheSmallestBatchThatIsAsFastAsAnyIsTaken) {
  MadeDevice device{.limit = 0};
  const BatchChoice choice = search_on(device, {.first = 16, .most = 4096});
  const double there =
      1.0 * static_cast<double>(choice.batch) / (8 + static_cast<double>(choice.batch));
  EXPECT_GE(there, 0.88);
  EXPECT_LE(choice.batch, 256);
  EXPECT_LE(choice.probes, 6);
}

TEST(TuneSearch, SaysWhenNotEvenOneClipFits) {
  MadeDevice device{.fixed = 2e9};
  const BatchChoice choice = search_on(device, {.first = 64});
  EXPECT_EQ(choice.batch, 0);
  EXPECT_EQ(device.asked.count(1), 1u);
  EXPECT_LE(choice.probes, 8);
}

TEST(TuneSearch, OneClipThatLeavesLittleFreeIsTakenAllTheSame) {
  MadeDevice device{.fixed = 9.5e8};
  EXPECT_EQ(search_on(device, {.first = 16}).batch, 1);
}

TEST(TuneSearch, StopsWhenTheTimeIsUp) {
  MadeDevice device;
  int asked = 0;
  const BatchChoice choice = search_batch(
      {.first = 4}, [&](int64_t batch) { return device(batch); }, [&] { return ++asked > 2; });
  EXPECT_EQ(choice.probes, 2);
  EXPECT_GT(choice.batch, 0);
}

TEST(TuneSearch, TwoSpeedsAreTheSameWithinTheErrorsOfTheirMeans) {
  const auto reading = [](double deviation, int64_t steps) {
    return TuneReading{.outcome = ProbeOutcome::fits, .deviation = deviation, .steps = steps};
  };
  EXPECT_NEAR(in_doubt(reading(0.09, 9), reading(0.08, 4), 0.1), 0.05, 1e-9);
  EXPECT_DOUBLE_EQ(in_doubt(reading(2.0, 9), reading(2.0, 9), 0.05), 0.05);
  EXPECT_DOUBLE_EQ(in_doubt(reading(0, 100), reading(0, 100), 0.05), 0.01);
  EXPECT_DOUBLE_EQ(in_doubt(reading(0, 1), reading(0, 100), 0.05), 0.05)
      << "one step has no spread";
}

TEST(TuneSearch, AClimbGoesToWhereTheMemoryEndsAndNoFurther) {
  MadeDevice device{.half_at = 1000};  // always faster; 57 leave an eighth free
  const BatchChoice choice = search_on(device, {.first = 8, .climbs = true});
  EXPECT_EQ(choice.batch, 57);
  EXPECT_TRUE(choice.limited);
  EXPECT_EQ(device.asked.rbegin()->first, 57) << "nothing that does not fit was tried";
}

TEST(TuneSearch, SaysWhetherMemoryWasTheLimit) {
  MadeDevice device;
  EXPECT_TRUE(search_on(device, {.first = 16, .speed_counts = false}).limited);
  EXPECT_FALSE(search_on(device, {.first = 16, .most = 32, .speed_counts = false}).limited);
}

TEST(TuneSearch, FewerWorkersAreTakenWhileNothingIsLostByIt) {
  std::map<int64_t, TuneReading> readings;
  for (const int64_t workers : {1, 2, 4, 8, 16})
    readings[workers] = {.outcome = ProbeOutcome::fits,
                         .speed = workers >= 4 ? 100.0 : 60.0,
                         .wait_share = workers >= 4 ? 0.001 : 0.3};
  int probes = 0;
  const auto [workers, reading] = search_depth(
      {.current = 16}, readings[16],
      [&](int64_t count) {
        ++probes;
        return readings[count];
      },
      never);
  EXPECT_EQ(workers, 4);
  EXPECT_EQ(reading.speed, 100);
  EXPECT_EQ(probes, 3);
}

TEST(TuneSearch, MoreWorkersAreTakenWhileTheyBringSomething) {
  const auto measure = [](int64_t count) {
    const auto workers = static_cast<double>(count);
    return TuneReading{.outcome = ProbeOutcome::fits,
                       .speed = std::min(100.0, 10 * workers),
                       .wait_share = workers >= 10 ? 0.0 : 0.5};
  };
  EXPECT_EQ(search_depth({.current = 2}, measure(2), measure, never).first, 16);
  EXPECT_EQ(search_depth({.current = 2, .most = 8}, measure(2), measure, never).first, 8);
}

}  // namespace tandem
