#include "observe/timeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "observe/run_events.h"
#include "util/child.h"
#include "util/log.h"
#include "util/scratch.h"
#include "util/text.h"

namespace tandem::tests {
namespace {

TimelineReading reading_of(double time, double utilisation, uint64_t used = 1024) {
  return {.time = time,
          .devices = {{.name = "/GPU:0", .utilisation = utilisation, .used = used, .limit = 4096}},
          .queues = {{"moved", 0.5}}};
}

// Waits for it, at most ten seconds.
template <class Condition>
bool comes_true(const Condition& condition) {
  const auto start = Clock::now();
  while (!condition() && seconds_since(start) < 10)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

std::vector<TimelineReading> readings_in(const std::filesystem::path& path) {
  return parse_timeline(contents(path));
}

}  // namespace

TEST(TimelineReading, SurvivesBeingWritten) {
  const TimelineReading before = reading_of(1794771616.5, 0.97);
  const auto after = parse_timeline(to_json_line(before) + "\n");
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].time, before.time);
  ASSERT_EQ(after[0].devices.size(), 1U);
  EXPECT_EQ(after[0].devices[0].name, "/GPU:0");
  EXPECT_EQ(after[0].devices[0].utilisation, 0.97);
  EXPECT_EQ(after[0].devices[0].used, 1024U);
  EXPECT_EQ(after[0].devices[0].limit, 4096U);
  EXPECT_EQ(after[0].queues, before.queues);
  EXPECT_FALSE(after[0].steps);
  TimelineReading between = before;
  between.steps = true;
  EXPECT_TRUE(parse_timeline(to_json_line(between))[0].steps);
}

TEST(TimelineReading, AnUnknownUtilisationIsLeftOut) {
  const std::string line = to_json_line(reading_of(1, -1));
  EXPECT_FALSE(contains(line, "utilisation"));
  EXPECT_EQ(parse_timeline(line)[0].devices[0].utilisation, -1);
}

TEST(TimelineReading, LinesThatMakeNoSenseArePassedOver) {
  const std::string good = to_json_line(reading_of(5, 0.5));
  EXPECT_EQ(parse_timeline("\n[]\n{\"time\":\"x\"}\n{\"time\":3,\"devices\":[],\"queues\":7}\n" +
                           good + "\n" + good.substr(0, 30))
                .size(),
            2U);
}

TEST(DeviceSummary, HasMeanDeviationAndLowest) {
  const auto summary = summarise({reading_of(1, 0.9, 100), reading_of(2, 0.5, 300),
                                  reading_of(3, -1, 200), reading_of(4, 0.7, 50)});
  ASSERT_EQ(summary.size(), 1U);
  EXPECT_EQ(summary[0].readings, 3U);
  EXPECT_NEAR(summary[0].mean, 0.7, 1e-12);
  EXPECT_NEAR(summary[0].deviation, 0.2, 1e-12);
  EXPECT_EQ(summary[0].lowest, 0.5);
  EXPECT_EQ(summary[0].highest, 0.9);
  EXPECT_EQ(summary[0].peak_used, 300U);
  EXPECT_EQ(to_string(summary[0]),
            "/GPU:0: 70% busy (deviation 20%, lowest 50%), peak 300 B of 4.0 KiB");
}

TEST(DeviceSummary, IsOfTheTimeBetweenSteps) {
  std::vector<TimelineReading> readings = {reading_of(1, 0, 900), reading_of(2, 0.9),
                                           reading_of(3, 0.7), reading_of(4, 0.1)};
  EXPECT_NEAR(summarise(readings)[0].mean, 0.425, 1e-12);  // as files have it that do not tell
  readings[1].steps = readings[2].steps = true;
  const auto summary = summarise(readings);
  EXPECT_EQ(summary[0].readings, 2U);
  EXPECT_NEAR(summary[0].mean, 0.8, 1e-12);
  EXPECT_EQ(summary[0].lowest, 0.7);
  EXPECT_EQ(summary[0].peak_used, 1024U) << "memory counts at all times";
}

TEST(DeviceSummary, WithoutUtilisationNamesTheMemory) {
  EXPECT_EQ(to_string(summarise({reading_of(1, -1, 2048)})[0]), "/GPU:0: peak 2.0 KiB of 4.0 KiB");
  EXPECT_TRUE(summarise({}).empty());
}

TEST(Timeline, ReadsDevicesAndQueuesAgainAndAgain) {
  const TestFolder scratch;
  const auto path = scratch / "timeline.jsonl";
  const auto began = Clock::now();
  std::atomic<int> flushed = 0;
  Timeline timeline({.path = path,
                     .interval = 0.005,
                     .read_devices = [] { return reading_of(0, 0.25).devices; },
                     .each_time = [&] { ++flushed; }});
  // One queue is never empty, one always.
  timeline.watch_queues([&] {
    return std::vector<QueueReading>{{.name = "full"},
                                     {.name = "empty", .empty_time = seconds_since(began)}};
  });
  ASSERT_TRUE(comes_true([&] {
    const auto lines = readings_in(path);
    return lines.size() >= 3 && !lines.back().queues.empty();
  }));
  EXPECT_GE(flushed, 2);
  const TimelineReading last = readings_in(path).back();
  EXPECT_NEAR(last.time, seconds_since_1970(), 60);
  EXPECT_EQ(last.devices.at(0).utilisation, 0.25);
  ASSERT_EQ(last.queues.size(), 2U);
  EXPECT_EQ(last.queues[0].first, "full");
  EXPECT_EQ(last.queues[0].second, 1);
  EXPECT_EQ(last.queues[1].first, "empty");
  EXPECT_LT(last.queues[1].second, 0.6);
  EXPECT_EQ(timeline.latest().at(0).utilisation, 0.25);
  EXPECT_NEAR(timeline.summary().at(0).mean, 0.25, 1e-9);
  EXPECT_FALSE(last.steps);
  timeline.note_steps(true);
  EXPECT_TRUE(comes_true([&] { return readings_in(path).back().steps; }));
  timeline.watch_queues({});  // a run that stops sooner than planned says nothing else
  EXPECT_TRUE(comes_true([&] { return !readings_in(path).back().steps; }));
  timeline.note_steps(true);
  EXPECT_TRUE(comes_true([&] { return readings_in(path).back().steps; }));
  timeline.note_steps(false);
  EXPECT_TRUE(comes_true([&] { return !readings_in(path).back().steps; }));
}

TEST(Timeline, DoesNotAskAFeedThatIsGone) {
  const TestFolder scratch;
  std::atomic<int> asked = 0, ticks = 0;
  Timeline timeline({.path = scratch / "t",
                     .interval = 0.001,
                     .read_devices = [] { return std::vector<DeviceReading>{}; },
                     .each_time = [&] { ++ticks; }});
  timeline.watch_queues([&] {
    ++asked;
    return std::vector<QueueReading>{};
  });
  ASSERT_TRUE(comes_true([&] { return asked > 2; }));
  timeline.watch_queues({});
  const int before = asked, since = ticks;
  ASSERT_TRUE(comes_true([&] { return ticks > since + 3; }));
  EXPECT_EQ(asked, before);
}

TEST(Timeline, NeverGrowsBeyondItsMostLines) {
  const TestFolder scratch;
  const auto path = scratch / "t";
  std::atomic<int> ticks = 0;
  {
    Timeline timeline({.path = path,
                       .interval = 0.0005,
                       .most_lines = 8,
                       .read_devices = [&] { return reading_of(0, 0.5).devices; },
                       .each_time = [&] { ++ticks; }});
    while (ticks < 60) {
      EXPECT_LE(split(contents(path), '\n').size(), 9U + 1U);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  const auto left = readings_in(path);
  EXPECT_LE(left.size(), 8U);
  EXPECT_GE(left.size(), 3U);
  for (size_t i = 1; i < left.size(); ++i) EXPECT_GE(left[i].time, left[i - 1].time);
}

TEST(Timeline, GoesOnAfterWhatIsThere) {
  const TestFolder scratch;
  const auto path = scratch / "t";
  put(path,
      to_json_line(reading_of(100, 0.5)) + "\n" + to_json_line(reading_of(101, 0.6)) + "\n{\"ti");
  {
    Timeline timeline({.path = path, .interval = 0.001, .read_devices = [] {
                         return reading_of(0, 0.9).devices;
                       }});
    ASSERT_TRUE(comes_true([&] { return readings_in(path).size() >= 3; }));
  }
  const auto lines = readings_in(path);
  EXPECT_EQ(lines[0].time, 100);
  EXPECT_EQ(lines[1].time, 101);
  EXPECT_EQ(lines[2].devices[0].utilisation, 0.9);
}

TEST(Timeline, ThatCannotBeWrittenWarnsOnceAndLetsTheRunGoOn) {
  const TestFolder scratch;
  put(scratch / "plain", "");
  const auto path = scratch / "plain" / "t";
  const ChildEnd end = in_child([&] {
    Timeline timeline({.path = path, .interval = 0.001, .read_devices = [] {
                         return std::vector<DeviceReading>{};
                       }});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.err,
            "warning: the timeline of this run ends here: cannot write `" + path.string() + "`\n");
}

}  // namespace tandem::tests
