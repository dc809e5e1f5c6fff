#include "observe/monitor_gpus.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace tandem {
namespace {

// NVML's stable C interface (NVML API reference, CUDA 13).
constexpr unsigned temperature_gpu = 0, clock_sm = 1, clock_memory = 2;
constexpr unsigned pcie_sent = 0, pcie_received = 1;
constexpr int success = 0;

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

template <class... Args>
std::optional<unsigned> number(const SharedLibrary& nvml, const char* function, void* device,
                               Args... args) {
  unsigned value = 0;
  if (nvml.call(function, device, args..., &value) != success) return std::nullopt;
  return value;
}

std::optional<int> as_int(std::optional<unsigned> value) {
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

std::string text_of(const SharedLibrary& nvml, const char* function, void* device) {
  std::array<char, 96> buffer{};
  const int status = nvml.call(function, device, buffer.data(), unsigned{buffer.size()});
  return status == success ? std::string(buffer.data()) : std::string();
}

}  // namespace

std::vector<std::string> throttle_reasons(uint64_t mask) {
  std::vector<std::string> words;
  for (const auto& [bit, word] : reasons)
    if (mask & bit) words.emplace_back(word);
  return words;
}

GpuMonitor::GpuMonitor(const std::string& library) : nvml_(library) {
  open_ = nvml_ && nvml_.call("nvmlInit_v2") == success;
  unsigned count = 0;
  if (open_) nvml_.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    void* handle = nullptr;
    if (nvml_.call("nvmlDeviceGetHandleByIndex_v2", i, &handle) == success)
      handles_.push_back(handle);
  }
}

GpuMonitor::~GpuMonitor() {
  if (open_) nvml_.call("nvmlShutdown");
}

GpuState GpuMonitor::read_one(void* handle) const {
  GpuState gpu{.hardware = text_of(nvml_, "nvmlDeviceGetName", handle),
               .uuid = text_of(nvml_, "nvmlDeviceGetUUID", handle)};
  std::array<unsigned, 2> percent{};
  if (nvml_.call("nvmlDeviceGetUtilizationRates", handle, percent.data()) == success) {
    gpu.utilisation = percent[0] / 100.0;
    gpu.bus_utilisation = percent[1] / 100.0;
  }
  std::array<unsigned long long, 3> memory{};  // all, free, used
  if (nvml_.call("nvmlDeviceGetMemoryInfo", handle, memory.data()) == success) {
    gpu.total = memory[0];
    gpu.used = memory[2];
  }
  if (const auto milliwatts = number(nvml_, "nvmlDeviceGetPowerUsage", handle))
    gpu.power = *milliwatts / 1000.0;
  if (const auto milliwatts = number(nvml_, "nvmlDeviceGetEnforcedPowerLimit", handle))
    gpu.power_limit = *milliwatts / 1000.0;
  gpu.temperature = as_int(number(nvml_, "nvmlDeviceGetTemperature", handle, temperature_gpu));
  gpu.sm_clock = as_int(number(nvml_, "nvmlDeviceGetClockInfo", handle, clock_sm));
  gpu.sm_clock_highest = as_int(number(nvml_, "nvmlDeviceGetMaxClockInfo", handle, clock_sm));
  gpu.memory_clock = as_int(number(nvml_, "nvmlDeviceGetClockInfo", handle, clock_memory));
  unsigned long long mask = 0;  // older drivers know it by its older name
  if (nvml_.call("nvmlDeviceGetCurrentClocksEventReasons", handle, &mask) == success ||
      nvml_.call("nvmlDeviceGetCurrentClocksThrottleReasons", handle, &mask) == success)
    gpu.throttled = throttle_reasons(mask);
  const auto pcie = [&](unsigned which) -> std::optional<double> {
    const auto kilobytes = number(nvml_, "nvmlDeviceGetPcieThroughput", handle, which);
    return kilobytes ? std::optional<double>(*kilobytes * 1000.0) : std::nullopt;
  };
  gpu.received = pcie(pcie_received);
  gpu.sent = pcie(pcie_sent);
  return gpu;
}

std::vector<GpuState> GpuMonitor::read() const {
  std::vector<GpuState> gpus;
  for (void* handle : handles_) {
    gpus.push_back(read_one(handle));
    gpus.back().name = fmt::format("GPU {}", gpus.size() - 1);
  }
  return gpus;
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
