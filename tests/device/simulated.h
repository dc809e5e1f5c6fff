// Simulated devices for a test, configured as a program would.
#pragma once

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "tandem/devices.h"

namespace tandem {

inline std::vector<LogicalDevice*> simulate_devices(int count) {
  DeviceRequest request;
  request.simulate_gpus = count;
  configure_devices(request);
  std::vector<LogicalDevice*> devices;
  for (const auto& gpu : DeviceRegistry::get().gpus()) devices.push_back(gpu.get());
  return devices;
}

}  // namespace tandem
