// Is a GPU well? Errors of its memory, what holds its clocks down, its slot, and who else works on
// it, asked of NVML at run time as the probe does (nvml_reader.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/probe.h"
#include "observe/checks.h"
#include "observe/nvml_reader.h"

namespace tandem {

struct GpuTenant {
  unsigned pid = 0;
  std::string name;                // of its program; empty: not to be seen from here
  std::optional<uint64_t> memory;  // bytes; none: the driver does not say
};

// What has no value could not be asked: an older driver, a card without the feature.
struct GpuHealth {
  int index = 0;
  std::optional<bool> ecc;                              // memory errors are corrected
  std::optional<uint64_t> uncorrected, corrected;       // errors since the driver was loaded
  std::optional<unsigned> rows_remapped;                // after uncorrectable errors
  bool rows_pending = false, rows_failed = false;       // remapping waits for a reset; cannot be
  std::optional<uint64_t> clock_reasons;                // NVML's bits
  std::optional<unsigned> clock, most_clock;            // of the multiprocessors, MHz
  std::optional<unsigned> link_lanes, most_link_lanes;  // of PCIe
  enum class Mode { shared, one_process, prohibited };
  Mode mode = Mode::shared;
  std::vector<GpuTenant> tenants;  // without this process
};

// One a GPU of the probe that NVML finds by its UUID.
std::vector<GpuHealth> read_gpu_health(const NvmlSymbols& symbols, const GpuProbe& probe);
// The same through the library the probe asks (TANDEM_NVML_LIBRARY, or NVIDIA's own); none where it
// cannot be opened.
std::vector<GpuHealth> read_gpu_health(const GpuProbe& probe);

// Of each GPU its memory errors, its clocks, its slot where that is narrower than the card, and its
// tenants.
std::vector<Check> check_gpu_health(const GpuHealth& gpu);

// Whether the GPUs read each other's memory directly. None for less than two.
std::vector<Check> check_peers(const GpuProbe& probe);

// "hardware is too hot (thermal slowdown), power cap"; empty: nothing holds the clocks down.
std::string clock_reasons_text(uint64_t reasons);

}  // namespace tandem
