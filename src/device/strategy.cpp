#include <fmt/format.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "tandem/devices.h"
#include "util/text.h"

namespace tandem {

std::string Strategy::describe() const {
  const std::string where = lower(join(replicas, ", "));
  switch (kind) {
    case StrategyKind::cpu: return "CPU";
    case StrategyKind::one_device: return "one device " + where;
    case StrategyKind::mirrored: return "mirrored over " + where;
    case StrategyKind::dual:
      return fmt::format("data on {}, model on {}", lower(data_device), where);
  }
  return "";
}

Strategy choose_strategy(int gpus, bool enable_multi_gpu) {
  if (gpus <= 0)
    return {.kind = StrategyKind::cpu, .replicas = {"/CPU:0"}, .data_device = "/CPU:0"};
  if (gpus == 1 || !enable_multi_gpu) {
    return {.kind = StrategyKind::one_device, .replicas = {"/GPU:0"}, .data_device = "/GPU:0"};
  }
  Strategy mirrored{.kind = StrategyKind::mirrored, .replicas = {}, .data_device = "/GPU:0"};
  for (int i = 0; i < gpus; ++i) mirrored.replicas.push_back(fmt::format("/GPU:{}", i));
  return mirrored;
}

Strategy setup_gpu_strategy(bool enable_multi_gpu) {
  const DeviceRegistry& registry = DeviceRegistry::get();
  const int count = static_cast<int>(registry.gpus().size());
  if (!registry.dual()) return choose_strategy(count, enable_multi_gpu);
  Strategy dual{.kind = StrategyKind::dual, .replicas = {}, .data_device = "/GPU:0"};
  for (int i = 1; i < count; ++i) dual.replicas.push_back(fmt::format("/GPU:{}", i));
  return dual;
}

struct DeviceContext::Scope {
  explicit Scope(LogicalDevice& device) : scope(device) {}
  DeviceScope scope;
};

DeviceContext::DeviceContext(const std::optional<std::string>& device) {
  DeviceRegistry& registry = DeviceRegistry::get();
  const std::string wanted = device ? *device : registry.gpus().empty() ? "/CPU:0" : "/GPU:0";
  LogicalDevice& found = registry.find(wanted);
  name_ = found.name();
  scope_ = std::make_unique<Scope>(found);
}

DeviceContext::~DeviceContext() = default;

DeviceContext get_device_context(const std::optional<std::string>& device) {
  return DeviceContext(device);
}

}  // namespace tandem
