#include "observe/run_events.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;
using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string this_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string text_in(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}
template <class Number>
Number number_in(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<Number>() : Number{};
}

Pairs pairs_in(const Json& json, const char* key, const char* first, const char* second) {
  Pairs pairs;
  if (!json.contains(key) || !json[key].is_array()) return pairs;
  for (const Json& entry : json[key])
    if (entry.is_object()) pairs.emplace_back(text_in(entry, first), text_in(entry, second));
  return pairs;
}

Json json_of(const Pairs& pairs, const char* first, const char* second) {
  Json list = Json::array();
  for (const auto& [a, b] : pairs) list.push_back({{first, a}, {second, b}});
  return list;
}

}  // namespace

double seconds_since_1970() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return std::chrono::duration<double>(now.time_since_epoch()).count();
}

RunEvent beginning_event(int64_t first_step, int64_t total_steps) {
  return {.kind = first_step > 0 ? "resume" : "start",
          .step = first_step,
          .total_steps = total_steps,
          .host = this_host(),
          .pid = getpid()};
}

void RunEvents::add(RunEvent event) {
  if (event.time == 0) event.time = seconds_since_1970();
  Json json = {{"time", event.time}, {"kind", event.kind}, {"step", event.step}};
  if (!event.text.empty()) json["text"] = event.text;
  if (event.begins()) {
    json["total_steps"] = event.total_steps;
    json["host"] = event.host;
    json["pid"] = event.pid;
    json["devices"] = json_of(event.devices, "name", "hardware");
  }
  if (!event.rows.empty()) json["rows"] = json_of(event.rows, "name", "value");
  const std::lock_guard lock(mutex_);
  std::ofstream file(path_, std::ios::app);
  file << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
  if (!file) {
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`", path_.string()))
        .hint("is the disk full?");
  }
}

std::vector<RunEvent> parse_run_events(const std::string& lines) {
  std::vector<RunEvent> events;
  for (const std::string& line : split(lines, '\n')) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || text_in(json, "kind").empty()) continue;
    events.push_back({.time = number_in<double>(json, "time"),
                      .kind = text_in(json, "kind"),
                      .step = number_in<int64_t>(json, "step"),
                      .text = text_in(json, "text"),
                      .total_steps = number_in<int64_t>(json, "total_steps"),
                      .host = text_in(json, "host"),
                      .pid = number_in<int64_t>(json, "pid"),
                      .devices = pairs_in(json, "devices", "name", "hardware"),
                      .rows = pairs_in(json, "rows", "name", "value")});
  }
  return events;
}

}  // namespace tandem
