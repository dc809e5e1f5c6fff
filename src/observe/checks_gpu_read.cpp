// The NVML calls behind GpuHealth.
#include <unistd.h>

#include <fstream>
#include <limits>

#include "observe/checks_gpu.h"

namespace tandem {
namespace {

constexpr int success = NvmlReader::success;
constexpr unsigned corrected_errors = 0, uncorrected_errors = 1, since_load = 0;
constexpr unsigned prohibited_mode = 2, default_mode = 0;

struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

std::optional<uint64_t> errors(const NvmlGpu& gpu, unsigned kind) {
  unsigned long long value = 0;
  const bool known = gpu.call("nvmlDeviceGetTotalEccErrors", kind, since_load, &value) == success;
  return known ? std::optional<uint64_t>(value) : std::nullopt;
}

void read_memory_errors(const NvmlGpu& gpu, GpuHealth& health) {
  unsigned current = 0, pending = 0;
  if (gpu.call("nvmlDeviceGetEccMode", &current, &pending) == success) health.ecc = current != 0;
  health.uncorrected = errors(gpu, uncorrected_errors);
  health.corrected = errors(gpu, corrected_errors);
  unsigned after_corrected = 0, after_uncorrected = 0, waits = 0, failed = 0;
  if (gpu.call("nvmlDeviceGetRemappedRows", &after_corrected, &after_uncorrected, &waits,
               &failed) == success) {
    health.rows_remapped = after_uncorrected;
    health.rows_pending = waits != 0;
    health.rows_failed = failed != 0;
  } else if (gpu.number("nvmlDeviceGetRetiredPagesPendingStatus").value_or(0) != 0) {
    health.rows_pending = true;
  }
}

void read_clocks(const NvmlGpu& gpu, GpuHealth& health) {
  health.clock_reasons = gpu.clock_reasons();
  health.clock = gpu.clock();
  health.most_clock = gpu.most_clock();
  health.link_lanes = gpu.number("nvmlDeviceGetCurrPcieLinkWidth");
  health.most_link_lanes = gpu.number("nvmlDeviceGetMaxPcieLinkWidth");
}

std::string program_of(unsigned pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

void read_tenants(const NvmlGpu& gpu, GpuHealth& health) {
  for (const char* name :
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"}) {
    std::vector<ProcessInfo> list(256);
    auto count = static_cast<unsigned>(list.size());
    if (gpu.call(name, &count, list.data()) != success) continue;
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

std::vector<GpuHealth> read_all(const NvmlReader& nvml, const GpuProbe& probe) {
  std::vector<GpuHealth> all;
  for (const GpuInfo& info : probe.gpus) {
    const std::optional<NvmlGpu> gpu = nvml.find(info.uuid);
    if (!gpu) continue;
    GpuHealth health{.index = info.index};
    read_memory_errors(*gpu, health);
    read_clocks(*gpu, health);
    const unsigned mode = gpu->number("nvmlDeviceGetComputeMode").value_or(default_mode);
    if (mode != default_mode)
      health.mode =
          mode == prohibited_mode ? GpuHealth::Mode::prohibited : GpuHealth::Mode::one_process;
    read_tenants(*gpu, health);
    all.push_back(std::move(health));
  }
  return all;
}

}  // namespace

std::vector<GpuHealth> read_gpu_health(const NvmlSymbols& symbols, const GpuProbe& probe) {
  return read_all(NvmlReader(symbols), probe);
}

std::vector<GpuHealth> read_gpu_health(const GpuProbe& probe) {
  return read_all(NvmlReader(), probe);
}

}  // namespace tandem
