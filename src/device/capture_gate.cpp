#include "device/capture_gate.h"

#include <map>

#include "device/logical_device.h"

namespace tandem {
namespace {

std::shared_mutex& gate_of(int cuda_index) {
  static std::mutex mutex;
  static std::map<int, std::shared_mutex> gates;  // never moves its values
  std::lock_guard lock(mutex);
  return gates[cuda_index];
}

}  // namespace

std::shared_lock<std::shared_mutex> launching_on(const LogicalDevice& device) {
  if (device.kind() != DeviceKind::cuda) return {};
  return std::shared_lock(gate_of(device.info().cuda_index));
}

std::unique_lock<std::shared_mutex> capturing_on(const LogicalDevice& device) {
  if (device.kind() != DeviceKind::cuda) return {};
  return std::unique_lock(gate_of(device.info().cuda_index));
}

}  // namespace tandem
