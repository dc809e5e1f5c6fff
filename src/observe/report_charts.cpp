#include "observe/report_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct Known {
  const char *name, *title, *unit;
  double factor;
  bool from_zero;
};
// In the order of the page. Utilisation and memory are drawn by the timeline.
constexpr Known known_figures[] = {
    {"learning_rate", "Learning rate", "", 1, true},
    {"gradient_norm", "Gradient norm", "", 1, true},
    {"tokens_per_second", "Speed", "tok/s", 1, true},
    {"audio_seconds_per_second", "Sound trained on", "s/s", 1, true},
    {"wait_share", "Waiting for data", "% of a step", 100, true},
    {"captures", "Captured graphs", "", 1, true},
    {"gpu_utilisation", "", "", 1, true},
    {"memory_used", "", "", 1, true},
};

ChartLine line_of(const Curve& curve, double factor = 1) {
  ChartLine line{.name = curve.validation ? "validation" : "train", .dots = curve.validation};
  for (const int64_t step : curve.steps) line.x.push_back(static_cast<double>(step));
  for (const double value : curve.values) line.y.push_back(factor * value);
  return line;
}

// Train (faint, and smoothed where there are many steps) and validation in one.
Chart both_splits(const RunRecord& run, const std::string& title, const std::string& name,
                  bool term) {
  constexpr size_t enough_to_smooth = 40;
  Chart chart{.title = title};
  for (const Curve& curve : run.curves) {
    if (curve.name != name || curve.term != term) continue;
    ChartLine line = line_of(curve);
    if (!curve.validation && curve.values.size() >= enough_to_smooth) {
      ChartLine mean{.name = "train, smoothed", .x = line.x, .y = smoothed(line.y)};
      line.faint = true;
      chart.lines.push_back(thinned(line));
      chart.lines.push_back(thinned(mean));
    } else {
      chart.lines.push_back(thinned(line));
    }
  }
  return chart;
}

std::string as_title(std::string name) {
  std::ranges::replace(name, '_', ' ');
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] -= 'a' - 'A';
  return name;
}

bool worth_drawing(const Chart& chart) {
  return std::ranges::any_of(chart.lines, [](const ChartLine& line) { return line.x.size() > 1; });
}

// One line a name, interrupted where the run stood still.
class OverTime {
 public:
  explicit OverTime(const std::vector<TimelineReading>& readings) {
    if (readings.empty()) return;
    start_ = readings.front().time;
    std::vector<double> steps;
    for (size_t i = 1; i < readings.size(); ++i)
      steps.push_back(readings[i].time - readings[i - 1].time);
    if (steps.empty()) return;
    std::ranges::nth_element(steps, steps.begin() + static_cast<ptrdiff_t>(steps.size() / 2));
    longest_ = std::max(5.0, 8 * steps[steps.size() / 2]);
  }
  void add(const std::string& name, double time, double value) {
    const auto [place, is_new] = places_.try_emplace(name, lines_.size());
    if (is_new) lines_.push_back({.name = name});
    ChartLine& line = lines_[place->second];
    const double minutes = (time - start_) / 60;
    if (!line.x.empty() && minutes - line.x.back() > longest_ / 60) {
      line.x.push_back(minutes);
      line.y.push_back(std::numeric_limits<double>::quiet_NaN());
    }
    line.x.push_back(minutes);
    line.y.push_back(value);
  }
  std::vector<ChartLine> take() const {
    std::vector<ChartLine> out;
    for (const ChartLine& line : lines_) out.push_back(thinned(line));
    return out;
  }

 private:
  double start_ = 0, longest_ = 5;  // seconds
  std::map<std::string, size_t> places_;
  std::vector<ChartLine> lines_;
};

double readable(double value) {  // six digits
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

}  // namespace

std::vector<double> smoothed(const std::vector<double>& values) {
  const double window = std::max(10.0, static_cast<double>(values.size()) / 40);
  const double keep = 1 - 2 / (window + 1);
  std::vector<double> means;
  double sum = 0, weight = 0;
  for (const double value : values) {
    sum = keep * sum + value;
    weight = keep * weight + 1;
    means.push_back(sum / weight);
  }
  return means;
}

ChartLine thinned(const ChartLine& line, size_t most) {
  if (line.x.size() <= 2 * most) return line;
  ChartLine out{.name = line.name, .faint = line.faint, .dots = line.dots};
  const size_t stretch = (line.x.size() + most - 1) / most;
  for (size_t start = 0; start < line.x.size(); start += stretch) {
    const size_t end = std::min(start + stretch, line.x.size());
    size_t low = start, high = start;
    bool interrupted = false;
    for (size_t i = start; i < end; ++i) {
      interrupted |= std::isnan(line.y[i]);
      if (line.y[i] < line.y[low] || std::isnan(line.y[low])) low = i;
      if (line.y[i] > line.y[high] || std::isnan(line.y[high])) high = i;
    }
    for (const size_t i : std::set<size_t>{low, high}) {
      out.x.push_back(line.x[i]);
      out.y.push_back(line.y[i]);
    }
    if (!interrupted) continue;
    out.x.push_back(line.x[end - 1]);
    out.y.push_back(std::numeric_limits<double>::quiet_NaN());
  }
  return out;
}

std::vector<Chart> metric_charts(const RunRecord& run) {
  std::vector<Chart> charts = {both_splits(run, "Loss", "loss", false)};
  std::set<std::string> drawn;
  for (const Curve& curve : run.curves)
    if (curve.term && drawn.insert(curve.name).second)
      charts.push_back(both_splits(run, as_title(curve.name), curve.name, true));
  drawn = {"loss"};
  for (const Known& known : known_figures) {
    drawn.insert(known.name);
    const Curve* curve = run.curve(known.name);
    if (!curve || !*known.title) continue;
    charts.push_back({.title = known.title,
                      .unit = known.unit,
                      .from_zero = known.from_zero,
                      .lines = {thinned(line_of(*curve, known.factor))}});
  }
  for (const Curve& curve : run.curves)
    if (!curve.term && drawn.insert(curve.name).second)
      charts.push_back(both_splits(run, as_title(curve.name), curve.name, false));
  std::erase_if(charts, [](const Chart& chart) { return !worth_drawing(chart); });
  return charts;
}

std::vector<Chart> timeline_charts(const RunRecord& run) {
  OverTime busy(run.timeline), memory(run.timeline), ready(run.timeline);
  for (const TimelineReading& reading : run.timeline) {
    for (const DeviceReading& device : reading.devices) {
      if (device.utilisation >= 0) busy.add(device.name, reading.time, 100 * device.utilisation);
      memory.add(device.name, reading.time, static_cast<double>(device.used) / 0x1p30);
    }
    for (const auto& [name, share] : reading.queues) ready.add(name, reading.time, 100 * share);
  }
  std::vector<Chart> charts = {
      {"Utilisation", "%", "minutes", true, busy.take()},
      {"Memory", "GiB", "minutes", true, memory.take()},
      {"Queues that were not empty", "% of the time", "minutes", true, ready.take()}};
  std::erase_if(charts, [](const Chart& chart) { return !worth_drawing(chart); });
  return charts;
}

std::string to_script_json(const std::vector<Chart>& charts) {
  Json list = Json::array();
  for (const Chart& chart : charts) {
    Json lines = Json::array();
    for (const ChartLine& line : chart.lines) {
      Json x = Json::array(), y = Json::array();
      for (const double value : line.x)
        chart.x == "step" ? x.push_back(static_cast<int64_t>(value)) : x.push_back(readable(value));
      for (const double value : line.y) y.push_back(readable(value));
      lines.push_back({{"name", line.name},
                       {"faint", line.faint},
                       {"dots", line.dots},
                       {"x", std::move(x)},
                       {"y", std::move(y)}});
    }
    list.push_back({{"title", chart.title},
                    {"unit", chart.unit},
                    {"x", chart.x},
                    {"fromZero", chart.from_zero},
                    {"lines", std::move(lines)}});
  }
  const std::string json = list.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;  // `<` stands in names only, and would let one of them end the element
  safe.reserve(json.size());
  for (const char c : json) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

}  // namespace tandem
