#include "cli/session.h"

#include <algorithm>
#include <cstdlib>

#include "device/candidates.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {

namespace {

// The GPU that preset `auto` is for: the one that trains, else the first this process will see,
// simulated ones included. Empty: none.
std::string first_gpu_name(const Arguments& arguments) {
  DeviceRequest request = device_request(arguments);
  size_t index = 0;
  for (const auto& [flag, value] : arguments.settings) {
    if (flag == "--visible-gpus") request.visible_gpus = value;
    if (flag == "--model-gpu")
      index =
          static_cast<size_t>(std::max<int64_t>(0, parse_int(split(value, ',')[0]).value_or(0)));
  }
  const std::vector<LogicalDeviceInfo> devices = find_candidates(request).devices;
  if (devices.empty()) return "";
  return devices[std::min(index, devices.size() - 1)].hardware;
}

bool chooses_preset_itself(const Arguments& arguments) {
  const auto is = [](const std::string& word) {
    return word == "preset=auto" || word == "+preset=auto" || word == "++preset=auto";
  };
  return arguments.value("--preset") == "auto" || std::ranges::any_of(arguments.rest, is);
}

}  // namespace

ResolveRequest settings_request(const Arguments& arguments) {
  ResolveRequest request;
  request.preset = arguments.value("--preset");
  request.config_file = arguments.value("--config");
  request.flags = arguments.settings;
  request.overrides = arguments.rest;
  if (chooses_preset_itself(arguments)) request.gpu_name = first_gpu_name(arguments);
  return request;
}

Resolved resolve_settings(const Arguments& arguments) {
  Resolved resolved = resolve(settings_request(arguments));
  for (const std::string& notice : resolved.notices) log_info("note: {}", notice);
  return resolved;
}

DeviceRequest device_request(const Arguments& arguments) {
  DeviceRequest request;
  request.simulate_gpus = arguments.integer("--simulate-gpus");
  request.split_gpu = arguments.integer("--split-gpu").value_or(0);
  if (arguments.has("--split-gpu") && request.split_gpu == 0)
    request.split_gpu = -1;  // refused later, with its range
  const char* variable = std::getenv("TANDEM_SIMULATE_GPUS");
  if (!request.simulate_gpus && request.split_gpu == 0 && variable && *variable) {
    const auto count = parse_int(variable);
    if (!count) {
      throw Error(ErrorKind::config, "TANDEM_SIMULATE_GPUS is \"" + std::string(variable) +
                                         "\"; expected a whole number");
    }
    request.simulate_gpus = static_cast<int>(*count);
  }
  return request;
}

DeviceRequest device_request(const Arguments& arguments, const Config& config) {
  DeviceRequest request = device_request(arguments);
  request.data_gpu = config.data.data_gpu;
  request.model_gpu = config.data.model_gpu;
  request.visible_gpus = config.training.visible_gpus;
  request.multi_gpu = config.training.multi_gpu;
  request.memory_isolation = config.training.enable_memory_isolation;
  request.data_gpu_memory = config.training.data_gpu_memory;
  request.model_gpu_memory = config.training.model_gpu_memory;
  return request;
}

void configure_or_stop(const DeviceRequest& request) {
  if (configure_devices(request) != DeviceOutcome::dual_failed) return;
  complain({"❌ Multi-GPU mode was requested but configuration failed",
            "   Please check your GPU indices and ensure you have at least 2 GPUs"});
  throw Error(ErrorKind::device, "Multi-GPU mode was requested but configuration failed")
      .mark_reported();
}

}  // namespace tandem
