#include "observe/profile_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "observe/profile_making.h"

namespace tandem::tests {
namespace {

using Place = std::pair<int64_t, int64_t>;  // process, row

Place place_of(const nlohmann::json& event) {
  return {event["pid"].get<int64_t>(), event["tid"].get<int64_t>()};
}

// Slices of a row lie inside each other or apart: what a viewer needs to stack them.
void expect_stacked(const nlohmann::json& events) {
  std::map<Place, std::vector<std::pair<double, double>>> rows;
  for (const auto& event : events)
    if (event["ph"] == "X")
      rows[place_of(event)].emplace_back(event["ts"].get<double>(),
                                         event["ts"].get<double>() + event["dur"].get<double>());
  for (auto& [place, slices] : rows) {
    std::ranges::sort(slices, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> ends;
    for (const auto& [start, end] : slices) {
      while (!ends.empty() && ends.back() <= start + 1e-6) ends.pop_back();
      if (!ends.empty()) {
        EXPECT_LE(end, ends.back() + 1e-6) << place.first << " " << place.second;
      }
      ends.push_back(end);
    }
  }
}

}  // namespace

TEST(ProfileTrace, HoldsEverySliceOnceUnderANamedRow) {
  LogicalDevice& device = *simulate_devices(1)[0];
  Profile profile = made_profile(device);
  profile.kernels.kernels = {
      {.name = "f<\"1\">", .cuda_device = 3, .stream = 7, .start = 1.3, .end = 1.31}};
  const ProfileTrace trace = make_trace(profile);
  const auto json = nlohmann::json::parse(trace.json);
  std::map<std::string, int64_t> counted;
  std::set<int64_t> processes;
  std::set<Place> rows, named;
  for (const auto& event : json["traceEvents"]) {
    const std::string kind = event["ph"];
    if (kind == "X") {
      ++counted[event["cat"]];
      rows.insert(place_of(event));
      EXPECT_GE(event["dur"].get<double>(), 0);
    } else if (kind == "C") {
      ++counted["reading"];
    } else if (event["name"] == "thread_name") {
      named.insert(place_of(event));
    } else if (event["name"] == "process_name") {
      processes.insert(event["pid"].get<int64_t>());
    }
  }
  EXPECT_EQ(counted["step"], 2 * 3);
  EXPECT_EQ(counted["part"], 2 * 3 * 6);
  EXPECT_EQ(counted["operation"], 3);
  EXPECT_EQ(counted["kernel"], 1);
  EXPECT_EQ(counted["reading"], trace.counts.readings);
  EXPECT_EQ(trace.counts.slices(), 6 + 36 + 3 + 1);
  EXPECT_EQ(json["otherData"]["slices"], trace.counts.slices());
  EXPECT_EQ(rows, named);
  for (const Place& row : rows) EXPECT_TRUE(processes.contains(row.first));
  expect_stacked(json["traceEvents"]);
}

TEST(ProfileTrace, TimesAreMicrosecondsWithTheirFractions) {
  const Profile profile = made_profile(*simulate_devices(1)[0]);
  const auto json = nlohmann::json::parse(make_trace(profile).json);
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != "aten::mm") continue;
    EXPECT_NEAR(event["ts"].get<double>(), 1325000, 1e-3);
    EXPECT_NEAR(event["dur"].get<double>(), 10000, 1e-3);
    EXPECT_EQ(event["args"]["FLOP"], 2000000);
    EXPECT_EQ(event["args"]["device"], "/GPU:0");
    return;
  }
  FAIL() << "the product is not in the trace";
}

}  // namespace tandem::tests
