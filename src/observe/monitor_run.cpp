#include "observe/monitor_run.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "observe/run_events.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr size_t steps_kept = 600;     // the widest terminal shows fewer
constexpr size_t steps_of_speed = 50;  // from which the time left is told
constexpr size_t readings_kept = 600;
constexpr double silence_of_the_gone = 10;  // seconds without a line of the timeline, at least

template <class Values>
void keep_last(Values& values, size_t most) {
  if (values.size() > most) values.erase(values.begin(), values.end() - static_cast<long>(most));
}

double seconds_of(fs::file_time_type time) {
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Files of a folder whose names begin and end so, in order.
std::vector<std::string> names_like(const fs::path& folder, const std::string& begin,
                                    const std::string& end) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

const char* to_string(RunStanding::Kind kind) {
  switch (kind) {
    case RunStanding::running: return "running";
    case RunStanding::finished: return "finished";
    case RunStanding::stopped: return "stopped";
    case RunStanding::failed: return "failed";
    case RunStanding::gone: return "killed";
  }
  return "";
}

fs::path newest_run(const fs::path& folder) {
  const auto written = [](const fs::path& place) {
    std::error_code ignored;
    std::optional<fs::file_time_type> newest;
    for (const char* name : {"events.jsonl", "metrics.jsonl", "timeline.jsonl", "run.json"}) {
      if (!fs::is_regular_file(place / name, ignored)) continue;
      const fs::file_time_type time = fs::last_write_time(place / name, ignored);
      if (!newest || time > *newest) newest = time;
    }
    return newest;
  };
  if (!written(folder)) {
    fs::path newest;
    std::optional<fs::file_time_type> newest_time;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const auto time = written(entry.path());
      if (!time || (newest_time && *time <= *newest_time)) continue;
      newest = entry.path();
      newest_time = time;
    }
    if (newest_time) return newest;
  }
  check_is_run(folder);
  return folder;
}

RunMonitor::RunMonitor(const fs::path& folder) : folder_(folder) {
  check_is_run(folder);
  state_.folder = folder.string();
}

GrowingFile& RunMonitor::file(const std::string& name) {
  return files_.try_emplace(name, folder_ / name).first->second;
}

const RunState& RunMonitor::read() {
  std::error_code ignored;
  if (!fs::is_directory(folder_, ignored)) {
    state_.standing = {RunStanding::stopped, "its folder is not there any more"};
    state_.seconds_left.reset();
    return state_;
  }
  const bool generates = fs::exists(folder_ / "run.json", ignored);
  state_.work = generates ? "generate" : "train";
  read_timelines();
  if (generates) {
    read_clips();
    judge_generation();
    state_.seconds_left = seconds_of_clips();
  } else {
    read_metrics();
    read_events();
    state_.seconds_left =
        state_.standing.kind == RunStanding::running ? seconds_left() : std::nullopt;
  }
  state_.devices.clear();
  for (const auto& [name, device] : devices_) state_.devices.push_back(device);
  return state_;
}

// A long run has more steps than anybody wants to wait for: only the last are taken apart.
void RunMonitor::read_metrics() {
  const GrowingFile::News news = file("metrics.jsonl").read();
  if (news.anew) {
    recent_.clear();
    state_.last.reset();
    state_.validation.reset();
  }
  const std::vector<std::string>& lines = news.lines;
  for (size_t i = lines.size(); i-- > 0;) {
    if (lines[i].find("\"split\":\"val\"") == std::string::npos) continue;
    const auto line = parse_metric_line(lines[i]);
    if (!line || !line->validation) continue;
    state_.validation = line;
    break;
  }
  for (size_t i = lines.size() - std::min(lines.size(), steps_kept); i < lines.size(); ++i)
    if (const auto line = parse_metric_line(lines[i]); line && !line->validation)
      recent_.push_back(*line);
  keep_last(recent_, steps_kept);
  if (!recent_.empty()) state_.last = recent_.back();
  state_.step = state_.last ? state_.last->step : 0;
  state_.losses.clear();
  state_.speeds.clear();
  for (const MetricLine& line : recent_) {
    if (const auto loss = line.value("loss")) state_.losses.push_back(*loss);
    if (const auto speed = line.value("tokens_per_second")) state_.speeds.push_back(*speed);
  }
}

void RunMonitor::read_events() {
  const GrowingFile::News news = file("events.jsonl").read();
  if (news.anew) {
    events_.clear();
    state_.skipped = 0;
    state_.happened.clear();
  }
  for (RunEvent& event : parse_run_events(join(news.lines, "\n"))) {
    if (event.begins()) {
      state_.total_steps = event.total_steps;
      began_ = event.time;
      for (const auto& [name, hardware] : event.devices) {
        devices_[name].now.name = name;  // a short run ends before the first reading of it
        devices_[name].hardware = hardware;
      }
    }
    if (event.kind == "skip") ++state_.skipped;
    if (!event.text.empty()) state_.happened = event.text;
    events_.push_back(std::move(event));
  }
  state_.standing = standing_of(events_);
}

void RunMonitor::read_timelines() {
  for (const std::string& name : names_like(folder_, "timeline.", "jsonl")) {
    const GrowingFile::News news = file(name).read();
    if (news.anew)
      for (auto& [device, kept] : devices_) kept.history.clear();
    for (const TimelineReading& reading : parse_timeline(join(news.lines, "\n"))) {
      if (reading.time > last_reading_) {
        if (last_reading_ > 0) reading_gap_ = reading.time - last_reading_;
        last_reading_ = reading.time;
      }
      for (const DeviceReading& device : reading.devices) {
        RunDevice& kept = devices_[device.name];
        kept.now = device;
        if (device.utilisation >= 0) kept.history.push_back(device.utilisation);
        keep_last(kept.history, readings_kept);
      }
      state_.queues = reading.queues;
    }
  }
}

void RunMonitor::read_clips() {
  for (const std::string& name : names_like(folder_, "manifest.", "jsonl")) {
    const GrowingFile::News news = file(name).read();
    for (const std::string& line : news.lines) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (!json.is_object() || !json.contains("file") || !json["file"].is_string()) continue;
      const std::string clip = json["file"].get<std::string>();
      const bool whole = json.value("status", nlohmann::json()) == "done";
      if (whole && made_.insert(clip).second) {
        std::error_code none;
        const auto written = fs::last_write_time(folder_ / "audio_samples" / clip, none);
        if (!none) clip_times_.push_back(seconds_of(written));
      }
      if (!whole) broken_.insert(clip);
      (whole ? broken_ : made_).erase(clip);
    }
  }
  state_.clips = static_cast<int64_t>(made_.size());
  state_.failed = static_cast<int64_t>(broken_.size());
}

// It keeps no record of its end but that it is finished; while it works its timeline grows.
void RunMonitor::judge_generation() {
  const auto told = nlohmann::json::parse(read_file(folder_ / "run.json"), nullptr, false);
  const auto said = [&](const char* key) {
    return told.is_object() ? told.value(key, nlohmann::json()) : nlohmann::json();
  };
  const bool finished = said("finished") == true;
  if (said("clips").is_number_integer()) state_.planned_clips = said("clips").get<int64_t>();
  if (said("started").is_number()) started_ = said("started").get<double>();
  std::error_code ignored;
  const auto started = fs::last_write_time(folder_ / "run.json", ignored);  // written at a start
  const auto age = std::chrono::duration<double>(fs::file_time_type::clock::now() - started);
  const double silent = std::min(seconds_since_1970() - last_reading_, age.count());
  if (finished) {
    state_.standing = {RunStanding::finished, "finished"};
  } else if (silent > std::max(silence_of_the_gone, 4 * reading_gap_)) {
    state_.standing = {RunStanding::stopped,
                       "stopped: nothing was heard of it for " + format_seconds(silent)};
  } else {
    state_.standing = {RunStanding::running, "running"};
  }
}

// From all clips since the last start: they are written a batch at a time.
std::optional<double> RunMonitor::seconds_of_clips() const {
  const int64_t left = state_.planned_clips - state_.clips - state_.failed;
  if (state_.standing.kind != RunStanding::running || started_ <= 0 || left <= 0)
    return std::nullopt;
  double last = 0;
  int64_t made = 0;
  for (const double time : clip_times_) {
    if (time < started_) continue;
    ++made;
    last = std::max(last, time);
  }
  if (made == 0 || last <= started_) return std::nullopt;
  const double each = (last - started_) / static_cast<double>(made);
  return std::max(0.0, each * static_cast<double>(left) - (seconds_since_1970() - last));
}

std::optional<double> RunMonitor::seconds_left() const {
  // From the last steps of this start: the time between two starts is nobody's speed.
  std::vector<std::pair<int64_t, double>> steps;
  for (size_t i = recent_.size() - std::min(recent_.size(), steps_of_speed); i < recent_.size();
       ++i)
    if (recent_[i].time >= began_ && recent_[i].time > 0)
      steps.emplace_back(recent_[i].step, recent_[i].time);
  if (steps.size() < 2 || state_.total_steps <= steps.back().first) return std::nullopt;
  const auto done = static_cast<double>(steps.back().first - steps.front().first);
  const double passed = steps.back().second - steps.front().second;
  if (done <= 0 || passed <= 0) return std::nullopt;
  return passed / done * static_cast<double>(state_.total_steps - steps.back().first);
}

}  // namespace tandem
