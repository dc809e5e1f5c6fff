#include "observe/diagnose/diagnosis_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "observe/diagnose/rules.h"
#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;
using rules::milliseconds;
using rules::percent;

std::string series_words(const SeriesFigures& series) {
  std::string text = fmt::format("median {}, deviation {}, p95 {}, p99 {}",
                                 milliseconds(series.median), milliseconds(series.deviation),
                                 milliseconds(series.p95), milliseconds(series.p99));
  text += series.period > 0 ? fmt::format(", swings by {} with a period of {} steps",
                                          percent(series.swing), series.period)
                            : std::string(", no oscillation");
  return text;
}

Json series_json(const SeriesFigures& series) {
  return {{"count", series.count},         {"mean", series.mean},       {"median", series.median},
          {"deviation", series.deviation}, {"p95", series.p95},         {"p99", series.p99},
          {"lowest", series.lowest},       {"highest", series.highest}, {"period", series.period},
          {"swing", series.swing}};
}

std::string device_words(const DeviceFigures& device) {
  std::string text = device.utilisation.count > 0
                         ? fmt::format("{} busy (lowest {})", percent(device.utilisation.mean),
                                       percent(device.utilisation.lowest))
                         : std::string("load not known");
  if (device.limit > 0)
    text += fmt::format(", memory {} of its limit", percent(static_cast<double>(device.peak) /
                                                            static_cast<double>(device.limit)));
  if (device.clock >= 0) text += fmt::format(", clock {} of the highest", percent(device.clock));
  if (!device.clock_reasons.empty()) text += " (" + join(device.clock_reasons, ", ") + ")";
  if (device.own_step > 0) text += fmt::format(", a step alone {}", milliseconds(device.own_step));
  return text;
}

Json spent_json(const SpentTime& spent) {
  return {{"seconds", spent.wall},
          {"on_core", spent.on_core},
          {"in_line", spent.in_line},
          {"asleep", spent.asleep()}};
}

Json figures_json(const Figures& figures) {
  Json json = {{"recorded", figures.recorded},
               {"replay_step", series_json(figures.replay)},
               {"fed_step", series_json(figures.fed)},
               {"wait_seconds_per_step", figures.wait},
               {"wait_share", rules::wait_share(figures)},
               {"headspace", rules::lost_share(figures)},
               {"first_batch_seconds", figures.first_batch},
               {"late_share", figures.late_share},
               {"drift", figures.drift},
               {"operations_per_step", figures.operations},
               {"launch_cost_seconds", figures.launch_cost},
               {"launch", spent_json(figures.launch)},
               {"launch_lateness_seconds", figures.lateness},
               {"syncs_per_step", figures.syncs},
               {"captures_per_step", figures.captures},
               {"parts", figures.parts},
               {"cores", figures.cores},
               {"core_load", figures.core_load},
               {"others_load", figures.others_load},
               {"clips_per_batch", figures.rows}};
  json["stages"] = {{"host", spent_json(figures.host)},
                    {"prepare", {{"seconds", figures.prepare}}},
                    {"move", {{"seconds", figures.move}, {"bytes", figures.batch_bytes}}}};
  json["storage"] = {{"bytes_per_second", figures.storage.rate},
                     {"bytes_per_second_of_four", figures.storage.rate_of_four},
                     {"useful_readers", figures.storage.useful_readers},
                     {"bytes_per_batch", figures.storage.batch_bytes}};
  json["queues"] = Json::object();
  for (const QueueFigures& queue : figures.queues)
    json["queues"][queue.name] = {{"ready", queue.ready},
                                  {"put_wait_seconds", queue.put_wait},
                                  {"get_wait_seconds", queue.get_wait}};
  json["devices"] = Json::object();
  for (const DeviceFigures& device : figures.devices)
    json["devices"][device.name] = {
        {"holds_model", device.holds_model},   {"prepares", device.prepares},
        {"own_step_seconds", device.own_step}, {"utilisation", series_json(device.utilisation)},
        {"peak_bytes", device.peak},           {"limit_bytes", device.limit},
        {"clock_share", device.clock},         {"clock_mhz", device.clock_mhz},
        {"highest_mhz", device.highest_mhz},   {"clock_reasons", device.clock_reasons},
        {"throttled_share", device.braked},    {"power_capped_share", device.power_capped}};
  return json;
}

// What another program does is no command of ours: nobody makes up a line for it.
std::string line_to_try(const Diagnosis& diagnosis, const std::string& command) {
  return diagnosis.remedy.outside.empty() ? command : diagnosis.remedy.outside;
}

Json evidence_json(const Evidence& one) {
  return {{"name", one.name}, {"value", one.value}, {"text", one.words}};
}

}  // namespace

std::string describe(const Figures& figures, const Circumstances& now) {
  std::string text;
  const auto add = [&](const char* name, const std::string& words) {
    text += fmt::format("{:<12}{}\n", name, words);
  };
  if (figures.replay.count > 0) {
    add("Replay", series_words(figures.replay));
    add("Headspace",
        fmt::format("a fed step could be {} shorter", percent(rules::lost_share(figures))));
  }
  add("Step", series_words(figures.fed));
  add("Waiting", fmt::format("{} of a step ({})", percent(rules::wait_share(figures)),
                             milliseconds(rules::lost_wait(figures))));
  if (!figures.recorded) {
    const double workers = static_cast<double>(now.config.data.num_workers);
    if (figures.host.wall > 0)
      add("Host",
          fmt::format("a batch takes {} of a thread ({} with {} threads): {} on a core, {} "
                      "in line for one, {} asleep",
                      milliseconds(figures.host.wall), milliseconds(figures.host.wall / workers),
                      now.config.data.num_workers, milliseconds(figures.host.on_core),
                      milliseconds(figures.host.in_line), milliseconds(figures.host.asleep())));
    add("Prepare", milliseconds(figures.prepare) + " a batch");
    if (figures.move > 0)
      add("Transfer",
          fmt::format("{} a batch of {:.2f} MB, {:.2f} GB/s", milliseconds(figures.move),
                      figures.batch_bytes / 1e6, figures.batch_bytes / figures.move / 1e9));
    if (figures.storage.rate > 0)
      add("Storage", fmt::format("{:.1f} MB/s cold, {:.1f} MB/s with four readers",
                                 figures.storage.rate / 1e6, figures.storage.rate_of_four / 1e6));
    add("Launches", fmt::format("{:.0f} operations a step, {:.1f} us each; {:.0f} syncs; {} "
                                "of the steps not captured yet; {} on a core, {} late",
                                figures.operations, 1e6 * figures.launch_cost, figures.syncs,
                                percent(figures.captures), milliseconds(figures.launch.on_core),
                                milliseconds(figures.lateness)));
  }
  for (const QueueFigures& queue : figures.queues)
    add("Queue", fmt::format("{:<9} ready {} of the time", queue.name, percent(queue.ready)));
  for (const DeviceFigures& device : figures.devices)
    add("Device", fmt::format("{:<9} {}", device.name, device_words(device)));
  if (figures.core_load >= 0)
    add("Cores", fmt::format("{} of {} in use{}", percent(figures.core_load), figures.cores,
                             figures.others_load >= 0 ? fmt::format(", {} by other programs",
                                                                    percent(figures.others_load))
                                                      : ""));
  return text;
}

std::string describe(const Diagnosis& diagnosis, const std::string& command) {
  std::string text =
      fmt::format("Verdict: {}\n{}\n", to_string(diagnosis.verdict), diagnosis.sentence);
  for (const Evidence& one : diagnosis.evidence) text += "  - " + one.words + "\n";
  if (diagnosis.verdict == Bottleneck::fed) return text;
  text += fmt::format("Expected gain: {} of the time\n", percent(diagnosis.expected_gain));
  const std::string line = line_to_try(diagnosis, command);
  if (!line.empty()) text += fmt::format("Try: {}\n     ({})\n", line, diagnosis.remedy.why);
  return text;
}

Json to_json(const Diagnosis& diagnosis, const std::string& command, const Figures& figures,
             const Circumstances& now) {
  const std::string line = line_to_try(diagnosis, command);
  Json json = {{"verdict", to_string(diagnosis.verdict)},
               {"sentence", diagnosis.sentence},
               {"evidence", Json::array()},
               {"expected_gain", diagnosis.expected_gain},
               {"command", line.empty() ? Json() : Json(line)},
               {"settings", diagnosis.remedy.settings},
               {"why", diagnosis.remedy.why},
               {"named", evidence_json(diagnosis.named)},
               {"figures", figures_json(figures)},
               {"named_figures", Json::object()}};
  for (const Evidence& one : diagnosis.evidence) json["evidence"].push_back(evidence_json(one));
  for (const Bottleneck bottleneck : all_bottlenecks())
    json["named_figures"][to_string(bottleneck)] = named_figure(bottleneck, figures, now);
  return json;
}

}  // namespace tandem
