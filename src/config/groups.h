// Named sets of values in configs/: `configs/<section>/<choice>.yaml` for one section,
// `configs/preset/<name>.yaml` and `configs/levels/<name>.yaml` for all of them. What `tandem tune`
// measured on this machine is a preset, too: `local/<gpu>` is `configs/local/<gpu>.yaml`.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/entry.h"

namespace tandem {

inline constexpr const char* preset_group = "preset";

// All choices of a group, sorted: {"tta/base_vae_captions", …}. Empty when it has no folder.
// Presets of this machine are among the presets.
std::vector<std::string> group_choices(const std::string& group);

// The values of `section=choice`. `place` is where the choice was made. Throws Error(config) for a
// choice that does not exist, with those that do.
std::vector<Entry> group_entries(const std::string& section, const std::string& choice,
                                 const Source& source, const std::string& place);

// The values of `configs/<folder>/<name>.yaml`, a file of all sections.
std::vector<Entry> named_entries(const std::string& folder, const std::string& name,
                                 const Source& source, const std::string& place);

// The values of a preset: first its `defaults`, less those of `replaced` sections, for which the
// user chose another group; then its own.
std::vector<Entry> preset_entries(const std::string& name, const std::set<std::string>& replaced,
                                  const std::string& place);

// "NVIDIA GeForce RTX 4090" -> "rtx4090"; "" when no preset is meant for that GPU.
std::string preset_for_gpu(std::string_view gpu_name);

// "NVIDIA GeForce RTX 4090" -> "local/geforce-rtx-4090"; "local/cpu" without a GPU. Whether there
// is such a preset is another question.
std::string local_preset_for_gpu(std::string_view gpu_name);
// Its file, there or not.
std::filesystem::path local_preset_file(std::string_view gpu_name);

}  // namespace tandem
