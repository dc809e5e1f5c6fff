#include "observe/monitor_gpus.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace tandem {
namespace {

// Bits of NVML.
constexpr std::array<std::pair<uint64_t, const char*>, 8> reasons = {{
    {0x002, "clocks set by the user"},
    {0x004, "power cap"},
    {0x008, "hardware slowdown"},
    {0x010, "sync boost"},
    {0x020, "heat (driver)"},
    {0x040, "heat (hardware)"},
    {0x080, "power brake"},
    {0x100, "display clock"},
}};

std::optional<int> as_int(std::optional<unsigned> value) {
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

GpuState state_of(const NvmlGpu& gpu, size_t index) {
  GpuState state{.name = fmt::format("GPU {}", index),
                 .hardware = gpu.name(),
                 .uuid = gpu.uuid(),
                 .power = gpu.power(),
                 .power_limit = gpu.power_limit(),
                 .temperature = as_int(gpu.temperature()),
                 .sm_clock = as_int(gpu.clock()),
                 .sm_clock_highest = as_int(gpu.most_clock()),
                 .memory_clock = as_int(gpu.memory_clock()),
                 .throttled = throttle_reasons(gpu.clock_reasons().value_or(0)),
                 .received = gpu.received(),
                 .sent = gpu.sent()};
  if (const auto share = gpu.utilisation()) {
    state.utilisation = share->units;
    state.bus_utilisation = share->bus;
  }
  if (const auto memory = gpu.memory()) {
    state.total = memory->total;
    state.used = memory->used;
  }
  return state;
}

}  // namespace

std::vector<std::string> throttle_reasons(uint64_t mask) {
  std::vector<std::string> words;
  for (const auto& [bit, word] : reasons)
    if (mask & bit) words.emplace_back(word);
  return words;
}

std::vector<GpuState> GpuMonitor::read() const {
  std::vector<GpuState> states;
  for (const NvmlGpu& gpu : gpus_) states.push_back(state_of(gpu, states.size()));
  return states;
}

GpuState state_of(const DeviceReading& simulated) {
  GpuState gpu{.name = simulated.name,
               .hardware = "simulated GPU",
               .used = simulated.used,
               .total = simulated.limit};
  if (simulated.utilisation >= 0) gpu.utilisation = simulated.utilisation;
  return gpu;
}

}  // namespace tandem
