// The devices a request may choose from (real, split or simulated), and making a choice of them
// visible.
#pragma once

#include <vector>

#include "device/logical_device.h"
#include "device/probe.h"
#include "tandem/devices.h"

namespace tandem {

struct Candidates {
  GpuProbe probe;  // the visible hardware, in the order of `devices` (split: one entry)
  std::vector<LogicalDeviceInfo> devices;  // original_index counts from 0
  bool real = false;                       // CUDA will be used
};

// Throws Error(config or device): simulate and split together, a bad count, a split without a GPU,
// ...
Candidates find_candidates(const DeviceRequest& request);

// The chosen ones, remapped to 0, 1, … in that order. For real GPUs this sets CUDA_VISIBLE_DEVICES
// (to UUIDs), so it must come before the first CUDA call. `probe` is reduced likewise.
std::vector<LogicalDeviceInfo> make_visible(Candidates& candidates, const std::vector<int>& chosen);

// Memory is taken as it is needed and in segments that can grow, instead of all at once.
void enable_memory_growth(const Candidates& candidates);

}  // namespace tandem
