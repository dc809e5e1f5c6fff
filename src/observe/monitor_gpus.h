// The state of every GPU of the machine, as the driver tells it (nvml_reader.h): a monitor takes no
// memory from the runs it watches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/device_load.h"
#include "observe/nvml_reader.h"

namespace tandem {

// What the driver does not say is empty.
struct GpuState {
  std::string name;      // "GPU 0", in PCI order; "/GPU:0" when it is simulated
  std::string hardware;  // "NVIDIA H200"
  std::string uuid;
  std::optional<double> utilisation;              // 0 to 1
  std::optional<double> bus_utilisation;          // of the memory's bus, 0 to 1
  uint64_t used = 0, total = 0;                   // bytes of memory; total 0: not known
  std::optional<double> power, power_limit;       // watts
  std::optional<int> temperature;                 // degrees Celsius
  std::optional<int> sm_clock, sm_clock_highest;  // MHz
  std::optional<int> memory_clock;                // MHz
  std::vector<std::string> throttled;             // why the clock is held down; empty: it is not
  std::optional<double> received, sent;           // bytes a second over PCIe, of the last 20 ms
};

// Why the clock is held down, from NVML's mask. An idle GPU's low clock is no throttling.
std::vector<std::string> throttle_reasons(uint64_t mask);

class GpuMonitor {
 public:
  explicit GpuMonitor(const std::string& library = nvml_library())
      : nvml_(library), gpus_(nvml_.gpus()) {}

  // Empty where there is no driver. Takes about 40 ms a GPU, in which PCIe is measured.
  std::vector<GpuState> read() const;

 private:
  NvmlReader nvml_;
  std::vector<NvmlGpu> gpus_;
};

// A simulated GPU of this process, in the same words.
GpuState state_of(const DeviceReading& simulated);

}  // namespace tandem
