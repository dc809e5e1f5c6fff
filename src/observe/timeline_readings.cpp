#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "observe/timeline.h"
#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// Four digits are more than any of these figures has.
double rounded(double share) { return std::round(share * 1e4) / 1e4; }

template <class Number>
Number number_in(const Json& json, const char* key, Number otherwise) {
  return json.contains(key) && json[key].is_number() ? json[key].get<Number>() : otherwise;
}

DeviceReading device_in(const std::string& name, const Json& json) {
  return {.name = name,
          .utilisation = number_in(json, "utilisation", -1.0),
          .used = number_in(json, "used", uint64_t{0}),
          .limit = number_in(json, "limit", uint64_t{0})};
}

}  // namespace

std::string to_json_line(const TimelineReading& reading) {
  Json devices = Json::object(), queues = Json::object();
  for (const DeviceReading& device : reading.devices) {
    Json entry = {{"used", device.used}, {"limit", device.limit}};
    if (device.utilisation >= 0) entry["utilisation"] = rounded(device.utilisation);
    devices[device.name] = std::move(entry);
  }
  for (const auto& [name, ready] : reading.queues) queues[name] = rounded(ready);
  Json line = {{"time", reading.time}, {"devices", devices}, {"queues", queues}};
  if (reading.steps) line["steps"] = true;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<TimelineReading> parse_timeline(const std::string& lines) {
  std::vector<TimelineReading> readings;
  for (const std::string& line : split(lines, '\n')) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || number_in(json, "time", 0.0) <= 0) continue;
    TimelineReading reading{.time = json["time"].get<double>()};
    if (json.contains("devices") && json["devices"].is_object()) {
      for (const auto& [name, device] : json["devices"].items())
        if (device.is_object()) reading.devices.push_back(device_in(name, device));
    }
    if (json.contains("queues") && json["queues"].is_object()) {
      for (const auto& [name, ready] : json["queues"].items())
        if (ready.is_number()) reading.queues.emplace_back(name, ready.get<double>());
    }
    reading.steps = json.contains("steps") && json["steps"] == true;
    readings.push_back(std::move(reading));
  }
  return readings;
}

std::vector<DeviceSummary> summarise(const std::vector<TimelineReading>& readings) {
  std::vector<DeviceSummary> summaries;
  std::vector<double> squares;  // of the distance from the mean so far (Welford)
  const bool stepped = std::ranges::any_of(readings, &TimelineReading::steps);
  for (const TimelineReading& reading : readings) {
    for (const DeviceReading& device : reading.devices) {
      auto found = std::ranges::find(summaries, device.name, &DeviceSummary::name);
      if (found == summaries.end()) {
        found = summaries.insert(summaries.end(), {.name = device.name});
        squares.push_back(0);
      }
      DeviceSummary& summary = *found;
      summary.peak_used = std::max(summary.peak_used, device.used);
      summary.limit = std::max(summary.limit, device.limit);
      if (device.utilisation < 0 || (stepped && !reading.steps)) continue;
      const bool first = ++summary.readings == 1;
      const double distance = device.utilisation - summary.mean;
      summary.mean += distance / static_cast<double>(summary.readings);
      squares[static_cast<size_t>(found - summaries.begin())] +=
          distance * (device.utilisation - summary.mean);
      summary.lowest = first ? device.utilisation : std::min(summary.lowest, device.utilisation);
      summary.highest = first ? device.utilisation : std::max(summary.highest, device.utilisation);
    }
  }
  for (size_t i = 0; i < summaries.size(); ++i) {
    if (summaries[i].readings > 1)
      summaries[i].deviation =
          std::sqrt(squares[i] / static_cast<double>(summaries[i].readings - 1));
  }
  return summaries;
}

std::string to_string(const DeviceSummary& summary) {
  const std::string memory = summary.limit > 0
                                 ? fmt::format("peak {} of {}", format_bytes(summary.peak_used),
                                               format_bytes(summary.limit))
                                 : fmt::format("peak {}", format_bytes(summary.peak_used));
  if (summary.readings == 0) return fmt::format("{}: {}", summary.name, memory);
  return fmt::format("{}: {:.0f}% busy (deviation {:.0f}%, lowest {:.0f}%), {}", summary.name,
                     100 * summary.mean, 100 * summary.deviation, 100 * summary.lowest, memory);
}

}  // namespace tandem
