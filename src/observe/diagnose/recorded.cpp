#include "observe/diagnose/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "observe/diagnose/kept_features.h"
#include "tandem/error.h"
#include "train/plan.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"
#include "util/threads.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr size_t fewest_steps = 10;
constexpr size_t enough_for_drift = 200;  // steps; fewer are too easily of unlike lengths

struct Steps {
  std::vector<double> seconds, waits, captures;
};

std::string text_of(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? read_file(path) : "";
}

// Speeds tell how steps compare; the moments at which they were written, how long they took.
Steps steps_of(const std::string& lines) {
  Steps steps;
  std::vector<double> between;
  double last = 0;
  for (const std::string& text : split(lines, '\n')) {
    const auto line = parse_metric_line(text);
    if (!line || line->validation) continue;
    const double speed = line->value("tokens_per_second").value_or(0);
    if (line->time > 0 && last > 0 && line->time > last) between.push_back(line->time - last);
    last = line->time;
    if (speed <= 0) continue;
    steps.seconds.push_back(1 / speed);
    steps.waits.push_back(line->value("wait_share").value_or(0));
    steps.captures.push_back(line->value("captures").value_or(0));
  }
  if (steps.seconds.empty()) return steps;
  const double middle = analyse_series(steps.seconds).median;
  const double scale = between.empty() ? 1 : analyse_series(between).median / middle;
  for (size_t i = 0; i < steps.seconds.size(); ++i) {
    steps.seconds[i] *= scale;
    steps.waits[i] *= steps.seconds[i];
  }
  return steps;
}

double drift_of(const std::vector<double>& seconds) {
  const size_t warm_up = warm_up_of(seconds.size());
  if (seconds.size() < enough_for_drift) return 1;
  const std::span<const double> all(seconds);
  const size_t third = (seconds.size() - warm_up) / 3;
  return analyse_series(all.last(third), 0).median /
         std::max(1e-12, analyse_series(all.subspan(warm_up, third), 0).median);
}

void note_captures(const Steps& steps, Figures& figures) {
  std::vector<double> capturing, others;
  for (size_t i = std::max<size_t>(1, warm_up_of(steps.seconds.size())); i < steps.seconds.size();
       ++i) {
    const bool captures = steps.captures[i] > steps.captures[i - 1];
    (captures ? capturing : others).push_back(steps.seconds[i] - steps.waits[i]);
  }
  if (capturing.empty()) return;
  figures.captures =
      static_cast<double>(capturing.size()) / static_cast<double>(capturing.size() + others.size());
  // Where every step captures, what one without would take is not known: half is a cautious guess.
  const double with = analyse_series(capturing, 0).median;
  const double without = others.empty() ? with / 2 : analyse_series(others, 0).median;
  figures.capture_cost = std::max(0.0, with - without);
}

StrategyKind strategy_of(const Config& config, size_t gpus) {
  if (gpus == 0) return StrategyKind::cpu;
  if (config.data.data_gpu) return StrategyKind::dual;
  return config.training.multi_gpu && gpus > 1 ? StrategyKind::mirrored : StrategyKind::one_device;
}

// Clocks stand beside the utilisation where the run wrote them: "clock" (share of the highest),
// "braked", "power_capped".
void add_clocks(const std::string& lines, std::vector<DeviceFigures>& devices) {
  for (DeviceFigures& device : devices) {
    double clocks = 0, braked = 0, capped = 0, count = 0;
    for (const std::string& text : split(lines, '\n')) {
      const auto line = nlohmann::json::parse(text, nullptr, false);
      if (!line.is_object() || !line.contains("devices") || !line["devices"].is_object() ||
          !line["devices"].contains(device.name)) {
        continue;
      }
      const auto& reading = line["devices"][device.name];
      if (!reading.is_object() || !reading.contains("clock") || !reading["clock"].is_number())
        continue;
      const auto said = [&](const char* key) {
        return reading.contains(key) && reading[key].is_boolean() && reading[key].get<bool>();
      };
      clocks += reading["clock"].get<double>();
      braked += said("braked");
      capped += said("power_capped");
      ++count;
    }
    if (count == 0) continue;
    device.clock = clocks / count;
    device.braked = braked / count;
    device.power_capped = capped / count;
  }
}

void add_timeline(const RunRecord& run, const std::string& lines, RecordedRun& out) {
  std::map<std::string, std::vector<double>> busy, ready;
  for (size_t i = run.timeline.size() / 5; i < run.timeline.size(); ++i) {
    for (const DeviceReading& device : run.timeline[i].devices)
      if (device.utilisation >= 0) busy[device.name].push_back(device.utilisation);
    for (const auto& [name, share] : run.timeline[i].queues) ready[name].push_back(share);
  }
  const std::vector<DeviceSummary> summaries = summarise(run.timeline);
  size_t gpus = 0;
  for (const DeviceSummary& summary : summaries) gpus += summary.name.starts_with("/GPU");
  out.now.visible_gpus = static_cast<int>(gpus);
  out.now.strategy = strategy_of(out.now.config, gpus);
  out.now.data_on_model = out.now.strategy != StrategyKind::dual;
  const bool dual = out.now.strategy == StrategyKind::dual;
  for (const DeviceSummary& summary : summaries) {
    const bool first = summary.name == "/GPU:0" || summary.name == "/CPU:0";
    const bool all = out.now.strategy == StrategyKind::mirrored;
    const auto index = parse_int(summary.name.substr(summary.name.rfind(':') + 1));
    out.figures.devices.push_back({.name = summary.name,
                                   .index = static_cast<int>(index.value_or(0)),
                                   .holds_model = dual ? !first : first || all,
                                   .prepares = first,
                                   .real = summary.name.starts_with("/GPU"),
                                   .utilisation = analyse_series(busy[summary.name], 0),
                                   .peak = summary.peak_used,
                                   .limit = summary.limit});
  }
  for (const char* name : {"loaded", "prepared", "moved"})
    if (ready.contains(name))
      out.figures.queues.push_back({.name = name, .ready = analyse_series(ready[name], 0).mean});
  add_clocks(lines, out.figures.devices);
}

}  // namespace

RecordedRun recorded_figures(const fs::path& folder) {
  const RunRecord run = read_run(folder);
  RecordedRun out;
  try {
    if (fs::exists(folder / "config.yaml"))
      out.now.config = Config::from_yaml((folder / "config.yaml").string());
  } catch (const Error& error) {
    log_warning("the run's settings are not known: {}", error.what());
  }
  const Steps steps = steps_of(text_of(folder / "metrics.jsonl"));
  if (steps.seconds.size() < fewest_steps) {
    throw Error(ErrorKind::data,
                fmt::format("`{}` has {} steps with a speed; at least {} are needed to judge it",
                            folder.string(), steps.seconds.size(), fewest_steps))
        .hint("let it train for a while, or measure without --run");
  }
  Figures& figures = out.figures;
  figures.recorded = true;
  figures.cores = static_cast<int>(std::max<size_t>(1, allowed_cpus().size()));
  figures.rows = static_cast<double>(out.now.config.data.batch_size);
  figures.batches_a_step = static_cast<int>(out.now.config.training.gradient_accumulation_steps);
  figures.fed = analyse_series(steps.seconds);
  figures.wait = analyse_series(steps.waits).mean;
  figures.drift = drift_of(steps.seconds);
  note_captures(steps, figures);
  for (const RunEvent& event : run.events)
    if (event.kind == "memory") figures.parts = std::max<int64_t>(2, figures.parts);
  add_timeline(run, text_of(folder / "timeline.jsonl"), out);
  note_kept_features(out.now);
  out.now.queue_capacity = queue_capacity(out.now.config.data.buffer_size, out.now.strategy);
  return out;
}

}  // namespace tandem
