// Which GPUs does this machine have? Asked without creating a CUDA context, so that the answer may
// still decide which GPUs this process will see.
//
// First way: NVML, opened at run time. Second: the CUDA driver, asked in a child process, because
// merely initialising it fixes the visible devices of the process that does. Neither: no GPUs,
// which is no error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct GpuInfo {
  int index = 0;  // in PCI order, as nvidia-smi counts
  std::string name;
  std::string uuid;  // "GPU-…", or "MIG-…" for an instance of a partitioned GPU
  std::string pci_bus;
  uint64_t memory_total = 0;  // bytes
  uint64_t memory_used = 0;
  std::optional<int> utilisation;         // percent over the driver's last sample
  std::optional<int> temperature;         // degrees Celsius
  std::optional<double> power;            // watts
  std::string compute_capability;         // "9.0"
  std::vector<int> peers;                 // indices whose memory this GPU reads directly
  std::vector<int> nvlinks;               // of those, the ones reached over NVLink
  std::optional<std::string> mig_parent;  // UUID of the whole GPU, for a MIG instance
};

struct GpuProbe {
  std::string source = "none";  // nvml | driver | none | simulated
  std::string driver_version;
  std::string cuda_version;  // the newest CUDA the driver serves, "13.0"
  std::vector<GpuInfo> gpus;
};

GpuProbe probe_gpus();

// The libraries asked, overridable for tests.
std::optional<GpuProbe> probe_with_nvml(const std::string& library);
std::optional<GpuProbe> probe_with_driver(const std::string& library);

// Has the CUDA driver been initialised in this process, and does it hold a context? Looks only;
// loads and initialises nothing.
enum class DriverState { not_loaded, not_initialised, initialised, has_context };
DriverState cuda_driver_state();

}  // namespace tandem
