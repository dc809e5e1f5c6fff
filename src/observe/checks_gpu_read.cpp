// The NVML calls behind GpuHealth: constants and structures of its stable C interface (NVML API
// reference, CUDA 13), written out so that no NVIDIA header is needed to build.
#include <unistd.h>

#include <fstream>
#include <limits>

#include "device/shared_library.h"
#include "observe/checks_gpu.h"

namespace tandem {
namespace {

using Handle = void*;
constexpr int success = 0, missing = -1;
constexpr unsigned corrected_errors = 0, uncorrected_errors = 1, since_load = 0;
constexpr unsigned sm_clock = 1;
constexpr unsigned prohibited_mode = 2, default_mode = 0;

struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

class Nvml {
 public:
  explicit Nvml(const NvmlSymbols& symbols) : symbols_(symbols) {}
  template <class... Args>
  int call(const char* name, Args... args) const {
    auto* function = reinterpret_cast<int (*)(Args...)>(symbols_(name));
    return function ? function(args...) : missing;
  }
  template <class... Args>
  std::optional<unsigned> number(const char* name, Args... args) const {
    unsigned value = 0;
    return call(name, args..., &value) == success ? std::optional(value) : std::nullopt;
  }
  std::optional<uint64_t> errors(Handle gpu, unsigned kind) const {
    unsigned long long value = 0;
    const bool known =
        call("nvmlDeviceGetTotalEccErrors", gpu, kind, since_load, &value) == success;
    return known ? std::optional<uint64_t>(value) : std::nullopt;
  }

 private:
  const NvmlSymbols& symbols_;
};

void read_memory_errors(const Nvml& nvml, Handle gpu, GpuHealth& health) {
  unsigned current = 0, pending = 0;
  if (nvml.call("nvmlDeviceGetEccMode", gpu, &current, &pending) == success)
    health.ecc = current != 0;
  health.uncorrected = nvml.errors(gpu, uncorrected_errors);
  health.corrected = nvml.errors(gpu, corrected_errors);
  unsigned after_corrected = 0, after_uncorrected = 0, waits = 0, failed = 0;
  if (nvml.call("nvmlDeviceGetRemappedRows", gpu, &after_corrected, &after_uncorrected, &waits,
                &failed) == success) {
    health.rows_remapped = after_uncorrected;
    health.rows_pending = waits != 0;
    health.rows_failed = failed != 0;
  } else if (nvml.number("nvmlDeviceGetRetiredPagesPendingStatus", gpu).value_or(0) != 0) {
    health.rows_pending = true;
  }
}

void read_clocks(const Nvml& nvml, Handle gpu, GpuHealth& health) {
  unsigned long long reasons = 0;
  // The first is the newer name of the second.
  for (const char* name :
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}) {
    if (nvml.call(name, gpu, &reasons) != success) continue;
    health.clock_reasons = reasons;
    break;
  }
  health.clock = nvml.number("nvmlDeviceGetClockInfo", gpu, sm_clock);
  health.most_clock = nvml.number("nvmlDeviceGetMaxClockInfo", gpu, sm_clock);
  health.link_lanes = nvml.number("nvmlDeviceGetCurrPcieLinkWidth", gpu);
  health.most_link_lanes = nvml.number("nvmlDeviceGetMaxPcieLinkWidth", gpu);
}

std::string program_of(unsigned pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

void read_tenants(const Nvml& nvml, Handle gpu, GpuHealth& health) {
  for (const char* name :
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"}) {
    std::vector<ProcessInfo> list(256);
    auto count = static_cast<unsigned>(list.size());
    if (nvml.call(name, gpu, &count, list.data()) != success) continue;
    for (unsigned i = 0; i < count && i < list.size(); ++i) {
      const ProcessInfo& one = list[i];
      if (one.pid == static_cast<unsigned>(getpid())) continue;
      const bool seen = one.memory != std::numeric_limits<unsigned long long>::max();
      health.tenants.push_back(
          {.pid = one.pid,
           .name = program_of(one.pid),
           .memory = seen ? std::optional<uint64_t>(one.memory) : std::nullopt});
    }
  }
}

}  // namespace

std::vector<GpuHealth> read_gpu_health(const NvmlSymbols& symbols, const GpuProbe& probe) {
  const Nvml nvml(symbols);
  std::vector<GpuHealth> all;
  if (nvml.call("nvmlInit_v2") != success) return all;
  for (const GpuInfo& gpu : probe.gpus) {
    Handle handle = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByUUID", gpu.uuid.c_str(), &handle) != success) continue;
    GpuHealth health{.index = gpu.index};
    read_memory_errors(nvml, handle, health);
    read_clocks(nvml, handle, health);
    const unsigned mode = nvml.number("nvmlDeviceGetComputeMode", handle).value_or(default_mode);
    if (mode != default_mode)
      health.mode =
          mode == prohibited_mode ? GpuHealth::Mode::prohibited : GpuHealth::Mode::one_process;
    read_tenants(nvml, handle, health);
    all.push_back(std::move(health));
  }
  nvml.call("nvmlShutdown");
  return all;
}

std::vector<GpuHealth> read_gpu_health(const GpuProbe& probe) {
  const SharedLibrary library(nvml_library());
  if (!library) return {};
  return read_gpu_health(
      [&](const char* name) { return reinterpret_cast<void*>(library.find<int()>(name)); }, probe);
}

}  // namespace tandem
