// Optimization levels: named sets of training values in configs/levels/<name>.yaml, chosen with
// `training.optimization_level`. They lie right above the defaults, below presets and everything a
// person writes. `basic` is the defaults and has no file.
#pragma once

#include <string>
#include <vector>

#include "config/entry.h"

namespace tandem {

inline constexpr const char* level_group = "levels";
inline constexpr const char* basic_level = "basic";

// None for `basic`. Throws Error(config) for a level without a file.
std::vector<Entry> level_entries(const std::string& name);

// What a run says at its start, one line:
//   optimization level `enhanced`: schedule=cosine, warmup_steps=500; instead of its own:
//   gradient_clip=2 (--gradient-clip)
std::string describe_level(const Resolved& resolved);

}  // namespace tandem
