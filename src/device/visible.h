// Which of the machine's GPUs a process may use: CUDA_VISIBLE_DEVICES as CUDA reads it, and on top
// of it our own `visible_gpus`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/probe.h"

namespace tandem {

// CUDA's rule: indices or (prefixes of) UUIDs, in the order given; the first entry that names no
// GPU, or names one again, ends the list. No variable: all. An empty one: none.
std::vector<GpuInfo> apply_cuda_visible_devices(const std::vector<GpuInfo>& gpus,
                                                const std::optional<std::string>& variable);

// Ours: the same forms, counted among `gpus`, but nothing is dropped in silence: an entry that
// names no GPU, or the same twice, or an empty list, is an Error(config). None: all of `gpus`.
std::vector<GpuInfo> apply_visible_gpus(const std::vector<GpuInfo>& gpus,
                                        const std::optional<std::string>& setting);

}  // namespace tandem
