#include "observe/run_record.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

std::string read_if_there(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? read_file(path) : "";
}

void add_curves(RunRecord& run, const std::string& metrics) {
  std::map<std::tuple<std::string, bool, bool>, size_t> places;
  const auto add = [&](const MetricLine& line, const std::string& name, double value, bool term) {
    const auto [place, is_new] =
        places.try_emplace({name, line.validation, term}, run.curves.size());
    if (is_new) run.curves.push_back({.name = name, .validation = line.validation, .term = term});
    run.curves[place->second].steps.push_back(line.step);
    run.curves[place->second].values.push_back(value);
  };
  std::istringstream lines(metrics);
  for (std::string text; std::getline(lines, text);) {
    const auto line = parse_metric_line(text);
    if (!line) continue;
    run.best.take(*line);
    for (const auto& [name, value] : line->values)
      if (name != "loss" || line->skipped.empty()) add(*line, name, value, false);
    for (const auto& [name, value] : line->terms) add(*line, name, value, true);
    run.last_step = std::max(run.last_step, line->step);
    if (line->time <= 0) continue;
    if (run.first_time == 0) run.first_time = line->time;
    run.last_time = line->time;
  }
}

// A process of this machine can be asked; of another one nothing is known.
bool process_is_gone(const RunEvent& beginning) {
  const RunEvent here = beginning_event(0, 0);
  if (beginning.host != here.host || beginning.pid <= 0) return false;
  return ::kill(static_cast<pid_t>(beginning.pid), 0) != 0 && errno == ESRCH;
}

}  // namespace

std::optional<double> MetricLine::value(const std::string& name) const {
  for (const auto& [key, number] : values)
    if (key == name) return number;
  return std::nullopt;
}

void BestValidation::take(const MetricLine& line) {
  const auto loss = line.value("loss");
  if (!line.validation || !loss) return;
  const bool lower = !line_ || *loss < *line_->value("loss");
  if (line.best || (lower && !(line_ && line_->best))) line_ = line;
}

std::optional<MetricLine> parse_metric_line(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number()) return std::nullopt;
  MetricLine line{.step = json["step"].get<int64_t>()};
  for (const auto& [key, value] : json.items()) {
    if (key == "split") line.validation = value == "val";
    if (key == "best") line.best = value == true;
    if (key == "skipped" && value.is_string()) line.skipped = value.get<std::string>();
    if (key == "time" && value.is_number()) line.time = value.get<double>();
    if (key == "step" || key == "time" || !value.is_number()) continue;
    if (std::isfinite(value.get<double>())) line.values.emplace_back(key, value.get<double>());
  }
  if (!json.contains("terms") || !json["terms"].is_object()) return line;
  for (const auto& [key, value] : json["terms"].items())
    if (value.is_number()) line.terms.emplace_back(key, value.get<double>());
  return line;
}

const Curve* RunRecord::curve(const std::string& name, bool validation) const {
  for (const Curve& one : curves)
    if (!one.term && one.name == name && one.validation == validation) return &one;
  return nullptr;
}

void check_is_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw Error(ErrorKind::config, fmt::format("there is no folder `{}`", folder.string()))
        .hint("name the run folder that `tandem train` printed");
  }
  for (const char* name : {"metrics.jsonl", "events.jsonl", "config.yaml"})
    if (fs::exists(folder / name, error)) return;
  throw Error(ErrorKind::config,
              fmt::format("`{}` holds no run: it has neither metrics.jsonl nor config.yaml",
                          folder.string()))
      .hint("name the run folder that `tandem train` printed");
}

RunRecord read_run(const fs::path& folder) {
  check_is_run(folder);
  RunRecord run{.folder = folder,
                .settings = read_if_there(folder / "config.yaml"),
                .events = parse_run_events(read_if_there(folder / "events.jsonl")),
                .timeline = parse_timeline(read_if_there(folder / "timeline.jsonl"))};
  add_curves(run, read_if_there(folder / "metrics.jsonl"));
  for (const RunEvent& event : run.events)
    if (event.begins()) run.total_steps = event.total_steps;
  return run;
}

bool is_process_there(const std::vector<RunEvent>& events) {
  const auto begun = std::ranges::find_if(events.rbegin(), events.rend(), &RunEvent::begins);
  return begun != events.rend() && !process_is_gone(*begun);
}

RunStanding standing_of(const std::vector<RunEvent>& events) {
  const RunEvent* beginning = nullptr;
  const RunEvent* end = nullptr;
  for (const RunEvent& event : events) {
    if (event.begins()) {
      beginning = &event;
      end = nullptr;
    }
    if (event.ends()) end = &event;
  }
  if (!beginning) return {RunStanding::running, "waiting for its first step"};
  const auto with_text = [&](const char* word) {
    return end->text.empty() ? std::string(word) : fmt::format("{}: {}", word, end->text);
  };
  if (end && end->kind == "finish") return {RunStanding::finished, with_text("finished")};
  if (end && end->kind == "stop") return {RunStanding::stopped, with_text("stopped")};
  if (end) return {RunStanding::failed, with_text("failed")};
  if (process_is_gone(*beginning))
    return {RunStanding::gone,
            fmt::format("killed: process {} is gone and did not say its end", beginning->pid)};
  return {RunStanding::running,
          fmt::format("running (process {} on {})", beginning->pid, beginning->host)};
}

}  // namespace tandem
