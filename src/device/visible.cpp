#include "device/visible.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

const GpuInfo* find_gpu(const std::vector<GpuInfo>& gpus, const std::string& entry) {
  if (const auto index = parse_int(entry)) {
    const bool exists = *index >= 0 && *index < static_cast<int64_t>(gpus.size());
    return exists ? &gpus[static_cast<size_t>(*index)] : nullptr;
  }
  const GpuInfo* found = nullptr;
  for (const GpuInfo& gpu : gpus) {
    const bool names_it = entry.size() > 4 && gpu.uuid.compare(0, entry.size(), entry) == 0;
    if (!names_it) continue;
    if (found) return nullptr;  // a prefix of two UUIDs names neither
    found = &gpu;
  }
  return found;
}

bool contains(const std::vector<GpuInfo>& gpus, const GpuInfo& gpu) {
  return std::any_of(gpus.begin(), gpus.end(), [&](const auto& g) { return g.uuid == gpu.uuid; });
}

std::string what_exists(size_t count) {
  if (count == 0) return "this process sees no GPU";
  return count == 1 ? "the only GPU here is 0" : fmt::format("the GPUs here are 0-{}", count - 1);
}

}  // namespace

std::vector<GpuInfo> apply_cuda_visible_devices(const std::vector<GpuInfo>& gpus,
                                                const std::optional<std::string>& variable) {
  if (!variable) return gpus;
  std::vector<GpuInfo> visible;
  for (const std::string& entry : split(*variable, ',')) {
    const GpuInfo* gpu = find_gpu(gpus, trim(entry));
    if (!gpu || contains(visible, *gpu)) break;
    visible.push_back(*gpu);
  }
  return visible;
}

std::vector<GpuInfo> apply_visible_gpus(const std::vector<GpuInfo>& gpus,
                                        const std::optional<std::string>& setting) {
  if (!setting) return gpus;
  constexpr const char* advice = "name GPUs as in `visible_gpus=0,1`, or leave it null for all";
  if (trim(*setting).empty()) {
    throw Error(ErrorKind::config, "`training.visible_gpus` is empty, which names no GPU")
        .hint(advice);
  }
  std::vector<GpuInfo> visible;
  for (const std::string& part : split(*setting, ',')) {
    const std::string entry = trim(part);
    const GpuInfo* gpu = find_gpu(gpus, entry);
    if (!gpu) {
      throw Error(ErrorKind::config,
                  fmt::format("`training.visible_gpus` is \"{}\", but `{}` names no GPU: {}",
                              *setting, entry, what_exists(gpus.size())))
          .hint(advice);
    }
    if (contains(visible, *gpu)) {
      throw Error(ErrorKind::config,
                  fmt::format("`training.visible_gpus` is \"{}\", which names GPU {} twice",
                              *setting, entry))
          .hint(advice);
    }
    visible.push_back(*gpu);
  }
  return visible;
}

}  // namespace tandem
