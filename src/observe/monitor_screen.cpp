// What `tandem monitor` shows on a terminal, and its plain line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "observe/monitor_reading.h"
#include "observe/progress.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr size_t history_kept = 600;
constexpr size_t narrow_spark = 20;

std::string percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

std::string time_of_day(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm local{};
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%H:%M:%S", localtime_r(&whole, &local));
  return text.data();
}

std::string memory_text(uint64_t used, uint64_t total) {
  return total > 0 ? fmt::format("{} of {}", format_bytes(used), format_bytes(total))
                   : format_bytes(used);
}

std::string rate(double bytes) { return format_bytes(static_cast<uint64_t>(bytes)) + "/s"; }

// "loss 2.9947  val 3.2594  norm 1.32  lr 3.8e-04", and what is known of the rest.
std::string step_text(const RunState& run, bool speed) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, fmt::format_string<double> format, double scale) {
    if (const auto value = run.last ? run.last->value(name) : std::nullopt)
      parts.push_back(fmt::format(format, *value * scale));
  };
  if (!speed) {
    add("loss", "loss {:.4f}", 1);
    if (run.last && !run.last->value("loss")) parts.emplace_back("loss not finite");
    if (const auto loss = run.validation ? run.validation->value("loss") : std::nullopt)
      parts.push_back(fmt::format("val {:.4f}", *loss));
    add("gradient_norm", "norm {:.2f}", 1);
    add("learning_rate", "lr {:.1e}", 1);
    return join(parts, "  ");
  }
  add("tokens_per_second", "{:.0f} tok/s", 1);
  add("audio_seconds_per_second", "{:.0f} audio-s/s", 1);
  add("wait_share", "wait {:.1f}%", 100);
  add("captures", "captures {:.0f}", 1);
  if (run.skipped > 0) parts.push_back(fmt::format("skipped {}", run.skipped));
  return join(parts, "  ");
}

std::string left_text(const RunState& run) {
  return run.seconds_left ? "  left " + format_seconds(*run.seconds_left) : "";
}

std::string clips_text(const RunState& run) {
  const std::string planned =
      run.planned_clips > 0 ? fmt::format("/{}", run.planned_clips) : std::string();
  return fmt::format("{}{} clips done{}{}", run.clips, planned,
                     run.failed > 0 ? fmt::format(", {} failed", run.failed) : "", left_text(run));
}

std::string queues_text(const RunState& run) {
  std::string text;
  for (const auto& [name, ready] : run.queues) text += fmt::format("  {} {}", name, percent(ready));
  return text;
}

MonitorLine::Tone tone_of(const RunStanding& standing) {
  switch (standing.kind) {
    case RunStanding::failed:
    case RunStanding::gone: return MonitorLine::bad;
    case RunStanding::stopped: return MonitorLine::warning;
    default: return MonitorLine::plain;
  }
}

class Screen {
 public:
  Screen(const MonitorHistory& history, size_t columns)
      : history_(history), columns_(columns), spark_(std::clamp<size_t>(columns / 4, 8, 60)) {}

  void add(const std::string& text, MonitorLine::Tone tone = MonitorLine::plain) {
    lines.push_back({fit(text, columns_), tone});
  }

  void add_run(const RunState& run) {
    add(fmt::format("{}  {}", run.folder, run.standing.words), tone_of(run.standing));
    const int bar_width = static_cast<int>(std::clamp<size_t>(columns_ / 3, 10, 40));
    if (run.work == "train") {
      add(Progress::bar(run.step, run.total_steps, bar_width) + left_text(run));
      add(with_spark(step_text(run, false), sparkline(run.losses, spark_)));
      add(with_spark(step_text(run, true), sparkline(run.speeds, spark_)));
    } else {
      const std::string bar = Progress::bar(run.clips + run.failed, run.planned_clips, bar_width);
      add(run.planned_clips > 0 ? bar + " clips" + left_text(run) : clips_text(run));
      if (run.failed > 0 && run.planned_clips > 0)
        add(fmt::format("{} clips failed", run.failed), MonitorLine::warning);
    }
    for (const RunDevice& device : run.devices) {
      const DeviceReading& now = device.now;
      add(fmt::format("  {:<8} {:>4} {:<{}}  {}  {}", now.name,
                      now.utilisation >= 0 ? percent(now.utilisation) : "-",
                      sparkline(device.history, narrow_spark, 0, 1), narrow_spark,
                      memory_text(now.used, now.limit), device.hardware));
    }
    if (!run.queues.empty()) add("  queues ready" + queues_text(run));
    if (!run.happened.empty()) add("  last event: " + run.happened);
  }

  void add_gpu(const GpuState& gpu) {
    add(fmt::format("{:<8} {:>4} {:<{}}  {}  {}", gpu.name,
                    gpu.utilisation ? percent(*gpu.utilisation) : "-",
                    sparkline(history_.of(gpu.name), narrow_spark, 0, 1), narrow_spark,
                    memory_text(gpu.used, gpu.total), gpu.hardware));
    std::string text;
    if (gpu.power) text += fmt::format("  {:.0f}", *gpu.power);
    if (gpu.power && gpu.power_limit) text += fmt::format(" of {:.0f}", *gpu.power_limit);
    if (gpu.power) text += " W";
    if (gpu.temperature) text += fmt::format("  {} °C", *gpu.temperature);
    if (gpu.sm_clock) text += fmt::format("  SM {}", *gpu.sm_clock);
    if (gpu.sm_clock && gpu.sm_clock_highest) text += fmt::format(" of {}", *gpu.sm_clock_highest);
    if (gpu.sm_clock) text += " MHz";
    if (gpu.memory_clock) text += fmt::format("  memory {} MHz", *gpu.memory_clock);
    if (gpu.received && gpu.sent)
      text += fmt::format("  PCIe in {} out {}", rate(*gpu.received), rate(*gpu.sent));
    if (!text.empty()) add("       " + text);
    if (!gpu.throttled.empty())
      add("         clock held down: " + join(gpu.throttled, ", "), MonitorLine::warning);
  }

  void add_host(const HostState& host) {
    add(fmt::format("{:<8} {:>4} {:<{}}  {}  {} cores{}", "host",
                    host.cpu ? percent(*host.cpu) : "-",
                    sparkline(history_.of("cpu"), narrow_spark, 0, 1), narrow_spark,
                    memory_text(host.used, host.total), host.cores,
                    host.load ? fmt::format("  load {:.2f}", *host.load) : ""));
  }

  std::vector<MonitorLine> lines;

 private:
  static std::string with_spark(const std::string& text, const std::string& spark) {
    return spark.empty() ? text : text + "  " + spark;
  }
  const MonitorHistory& history_;
  const size_t columns_, spark_;
};

}  // namespace

std::string sparkline(const std::vector<double>& values, size_t width, double low, double high) {
  static constexpr std::array<const char*, 8> bars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (size_t i = values.size() - std::min(values.size(), width); i < values.size(); ++i) {
    const double share = high > low ? (values[i] - low) / (high - low) : 0;
    const double place = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * 7 : 0;
    text += bars[static_cast<size_t>(std::lround(place))];
  }
  return text;
}

std::string sparkline(const std::vector<double>& values, size_t width) {
  if (values.empty()) return "";
  const auto first = values.end() - static_cast<long>(std::min(values.size(), width));
  const auto [low, high] = std::minmax_element(first, values.end());
  return sparkline(values, width, *low, *high);
}

std::string fit(const std::string& text, size_t columns) {
  std::string out;
  size_t characters = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0) == 0x80;
    if (!continues && ++characters > columns) break;
    out += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return out;
}

void MonitorHistory::add(const MonitorReading& reading) {
  const auto keep = [&](const std::string& name, const std::optional<double>& share) {
    if (!share) return;
    std::vector<double>& values = values_[name];
    values.push_back(*share);
    if (values.size() > history_kept) values.erase(values.begin());
  };
  keep("cpu", reading.host.cpu);
  for (const GpuState& gpu : reading.gpus) keep(gpu.name, gpu.utilisation);
}

const std::vector<double>& MonitorHistory::of(const std::string& name) const {
  static const std::vector<double> none;
  const auto found = values_.find(name);
  return found == values_.end() ? none : found->second;
}

std::vector<MonitorLine> screen_lines(const MonitorReading& reading, const MonitorHistory& history,
                                      size_t columns) {
  Screen screen(history, columns);
  screen.add(fmt::format("tandem monitor  {}  q ends", time_of_day(reading.time)),
             MonitorLine::title);
  if (reading.run) {
    screen.add_run(*reading.run);
    screen.add("");
  }
  for (const GpuState& gpu : reading.gpus) screen.add_gpu(gpu);
  if (reading.gpus.empty()) screen.add("no GPU of this machine is known to the driver");
  screen.add_host(reading.host);
  return std::move(screen.lines);
}

std::string to_plain_line(const MonitorReading& reading) {
  std::string text = time_of_day(reading.time);
  const auto device = [&](const std::string& name, std::optional<double> busy, uint64_t used) {
    text += fmt::format("  {}{} {}", name, busy ? " " + percent(*busy) : "", format_bytes(used));
  };
  if (const auto& run = reading.run) {
    text += run->work == "train"
                ? fmt::format("  step {}/{}  {}  {}{}", run->step, run->total_steps,
                              step_text(*run, false), step_text(*run, true), left_text(*run))
                : "  " + clips_text(*run);
    for (const RunDevice& one : run->devices)
      device(one.now.name,
             one.now.utilisation >= 0 ? std::optional(one.now.utilisation) : std::nullopt,
             one.now.used);
    if (!run->queues.empty()) text += "  ready" + queues_text(*run);
  }
  for (const GpuState& gpu : reading.gpus) {
    device(gpu.name, gpu.utilisation, gpu.used);
    if (gpu.power) text += fmt::format(" {:.0f} W", *gpu.power);
    if (!gpu.throttled.empty()) text += fmt::format(" ({})", join(gpu.throttled, ", "));
  }
  const HostState& host = reading.host;
  text += fmt::format("  cpu {}  memory {}", host.cpu ? percent(*host.cpu) : "-",
                      format_bytes(host.used));
  return fit(text, text.size());
}

}  // namespace tandem
