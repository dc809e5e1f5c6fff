#include "cli/session.h"

#include <cstdlib>

#include "device/probe.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {

Resolved resolve_settings(const Arguments& arguments) {
  ResolveRequest request;
  request.preset = arguments.value("--preset");
  request.config_file = arguments.value("--config");
  request.flags = arguments.settings;
  request.overrides = arguments.rest;
  const bool automatic = request.preset == "auto";
  if (automatic) {
    const GpuProbe probe = probe_gpus();
    if (!probe.gpus.empty()) request.gpu_name = probe.gpus.front().name;
  }
  Resolved resolved = resolve(request);
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
