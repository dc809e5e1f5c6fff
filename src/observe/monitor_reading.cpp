#include "observe/monitor_reading.h"

#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json bytes_or_null(uint64_t bytes) { return bytes > 0 ? Json(bytes) : Json(nullptr); }

Json gpu_json(const GpuState& gpu) {
  return {{"name", gpu.name},
          {"hardware", gpu.hardware},
          {"uuid", gpu.uuid},
          {"utilisation", or_null(gpu.utilisation)},
          {"memory_bus_utilisation", or_null(gpu.bus_utilisation)},
          {"memory_used", gpu.used},
          {"memory_total", bytes_or_null(gpu.total)},
          {"power_watts", or_null(gpu.power)},
          {"power_limit_watts", or_null(gpu.power_limit)},
          {"temperature_celsius", or_null(gpu.temperature)},
          {"sm_clock_mhz", or_null(gpu.sm_clock)},
          {"sm_clock_highest_mhz", or_null(gpu.sm_clock_highest)},
          {"memory_clock_mhz", or_null(gpu.memory_clock)},
          {"throttled", gpu.throttled},
          {"pcie_received_bytes_per_second", or_null(gpu.received)},
          {"pcie_sent_bytes_per_second", or_null(gpu.sent)}};
}

Json training_json(const RunState& run) {
  const auto figure = [&](const char* name) {
    return run.last ? or_null(run.last->value(name)) : Json(nullptr);
  };
  Json json = {
      {"step", run.step},
      {"total_steps", run.total_steps},
      {"loss", figure("loss")},
      {"validation_loss", run.validation ? or_null(run.validation->value("loss")) : Json()},
      {"gradient_norm", figure("gradient_norm")},
      {"learning_rate", figure("learning_rate")},
      {"tokens_per_second", figure("tokens_per_second")},
      {"audio_seconds_per_second", figure("audio_seconds_per_second")},
      {"wait_share", figure("wait_share")},
      {"captures", figure("captures")},
      {"skipped_steps", run.skipped},
      {"seconds_left", or_null(run.seconds_left)},
      {"terms", Json::object()}};
  if (run.last)
    for (const auto& [name, value] : run.last->terms) json["terms"][name] = value;
  return json;
}

Json generation_json(const RunState& run) {
  return {{"clips_done", run.clips},
          {"clips_failed", run.failed},
          {"planned_clips", run.planned_clips > 0 ? Json(run.planned_clips) : Json()},
          {"seconds_left", or_null(run.seconds_left)}};
}

Json run_json(const RunState& run) {
  Json json = {{"folder", run.folder},
               {"work", run.work},
               {"state", to_string(run.standing.kind)},
               {"state_words", run.standing.words}};
  json.update(run.work == "train" ? training_json(run) : generation_json(run));
  json["devices"] = Json::array();
  for (const RunDevice& device : run.devices) {
    const DeviceReading& now = device.now;
    json["devices"].push_back(
        {{"name", now.name},
         {"hardware", device.hardware},
         {"utilisation", now.utilisation >= 0 ? Json(now.utilisation) : Json(nullptr)},
         {"memory_used", now.used},
         {"memory_limit", bytes_or_null(now.limit)}});
  }
  json["queues"] = Json::object();
  for (const auto& [name, ready] : run.queues) json["queues"][name] = ready;
  return json;
}

}  // namespace

std::string to_json(const MonitorReading& reading) {
  const HostState& host = reading.host;
  Json json = {{"time", reading.time},
               {"host",
                {{"cores", host.cores},
                 {"cpu_utilisation", or_null(host.cpu)},
                 {"load", or_null(host.load)},
                 {"memory_used", host.used},
                 {"memory_total", bytes_or_null(host.total)}}},
               {"gpus", Json::array()}};
  for (const GpuState& gpu : reading.gpus) json["gpus"].push_back(gpu_json(gpu));
  json["run"] = reading.run ? run_json(*reading.run) : Json(nullptr);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem
