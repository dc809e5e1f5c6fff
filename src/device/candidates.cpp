#include "device/candidates.h"

#include <fmt/format.h>

#include <cstdlib>

#include "device/visible.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

#ifdef TANDEM_WITH_CUDA
#include <c10/core/AllocatorConfig.h>
#endif

namespace tandem {
namespace {

#ifdef TANDEM_WITH_CUDA
constexpr bool build_has_cuda = true;
#else
constexpr bool build_has_cuda = false;
#endif

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

// "2" for all devices, or "1,2.5" one by one (the last stands for the rest).
double number_for(const char* name, int index, double standard) {
  const auto text = variable(name);
  if (!text) return standard;
  const auto parts = split(*text, ',');
  const auto value =
      parse_double(trim(parts[std::min<size_t>(static_cast<size_t>(index), parts.size() - 1)]));
  if (!value || *value <= 0) {
    throw Error(
        ErrorKind::config,
        fmt::format("{} is \"{}\"; expected positive numbers such as `1,2.5`", name, *text));
  }
  return *value;
}

Candidates simulated(const DeviceRequest& request) {
  const int count = *request.simulate_gpus;
  if (count < 0 || count > 64) {
    throw Error(ErrorKind::config, fmt::format("--simulate-gpus is {}; expected 0 to 64", count));
  }
  GpuProbe probe;
  probe.source = "simulated";
  for (int i = 0; i < count; ++i) {
    GpuInfo gpu;
    gpu.index = i;
    gpu.name = "simulated GPU";
    gpu.uuid = fmt::format("GPU-simulated-{}", i);
    gpu.memory_total = static_cast<uint64_t>(number_for("TANDEM_SIMULATE_MEMORY", i, 8192)) << 20;
    probe.gpus.push_back(gpu);
  }
  probe.gpus = apply_visible_gpus(probe.gpus, request.visible_gpus);
  Candidates out;
  for (const GpuInfo& gpu : probe.gpus) {
    const int index = static_cast<int>(out.devices.size());
    out.devices.push_back({.kind = DeviceKind::simulated,
                           .index = index,
                           .original_index = index,
                           .hardware = gpu.name,
                           .memory_limit = gpu.memory_total,
                           .slowness = number_for("TANDEM_SIMULATE_SLOWNESS", gpu.index, 1.0)});
  }
  out.probe = std::move(probe);
  return out;
}

// CUDA serves a process one MIG instance only.
void keep_one_mig_instance(std::vector<GpuInfo>& gpus, bool asked_for) {
  size_t instances = 0;
  for (const GpuInfo& gpu : gpus) instances += gpu.mig_parent.has_value();
  if (instances == 0 || gpus.size() == 1) return;
  if (asked_for) {
    throw Error(ErrorKind::device,
                "CUDA serves one MIG instance a process, but visible_gpus names several devices")
        .hint("name one of them, and start one process for each");
  }
  log_warning(
      "this GPU is partitioned (MIG): CUDA serves one instance a process, using {} and not the "
      "other {}",
      gpus.front().uuid, gpus.size() - 1);
  gpus.resize(1);
}

Candidates real(const DeviceRequest& request) {
  Candidates out;
  out.probe = probe_gpus();
  auto& gpus = out.probe.gpus;
  if (!build_has_cuda && !gpus.empty()) {
    log_warning("this build of Tandem has no CUDA: the {} GPUs of this machine are not used",
                gpus.size());
    gpus.clear();
  }
  gpus = apply_cuda_visible_devices(gpus, variable("CUDA_VISIBLE_DEVICES"));
  gpus = apply_visible_gpus(gpus, request.visible_gpus);
  keep_one_mig_instance(gpus, request.visible_gpus.has_value());
  for (const GpuInfo& gpu : gpus) {
    const int index = static_cast<int>(out.devices.size());
    out.devices.push_back({.kind = DeviceKind::cuda,
                           .index = index,
                           .original_index = index,
                           .cuda_index = index,
                           .hardware = gpu.name});
  }
  out.real = true;
  return out;
}

Candidates split_gpu(const DeviceRequest& request) {
  if (request.split_gpu < 2 || request.split_gpu > 16) {
    throw Error(ErrorKind::config,
                fmt::format("--split-gpu is {}; expected 2 to 16", request.split_gpu));
  }
  Candidates out = real(request);
  if (out.devices.empty()) {
    throw Error(ErrorKind::device, "--split-gpu needs one real GPU, and this process sees none")
        .hint("use --simulate-gpus to run the same plan without a GPU");
  }
  const LogicalDeviceInfo whole = out.devices.front();
  out.probe.gpus.resize(1);
  out.devices.clear();
  for (int i = 0; i < request.split_gpu; ++i) {
    LogicalDeviceInfo part = whole;
    part.index = part.original_index = i;
    part.hardware = fmt::format("{}, part {} of {}", whole.hardware, i + 1, request.split_gpu);
    part.memory_limit = out.probe.gpus[0].memory_total / static_cast<uint64_t>(request.split_gpu);
    out.devices.push_back(part);
  }
  return out;
}

}  // namespace

Candidates find_candidates(const DeviceRequest& request) {
  if (request.simulate_gpus && request.split_gpu) {
    throw Error(ErrorKind::config, "--simulate-gpus and --split-gpu exclude each other")
        .hint("simulate without a GPU, split with one");
  }
  if (request.simulate_gpus) return simulated(request);
  return request.split_gpu ? split_gpu(request) : real(request);
}

std::vector<LogicalDeviceInfo> make_visible(Candidates& candidates,
                                            const std::vector<int>& chosen) {
  std::vector<LogicalDeviceInfo> remapped;
  std::vector<GpuInfo> hardware;
  std::vector<std::string> uuids;
  const bool one_to_one = candidates.probe.gpus.size() == candidates.devices.size();
  for (int original : chosen) {
    LogicalDeviceInfo info = candidates.devices[static_cast<size_t>(original)];
    info.index = static_cast<int>(remapped.size());
    if (one_to_one) {
      const GpuInfo& gpu = candidates.probe.gpus[static_cast<size_t>(original)];
      if (candidates.real) info.cuda_index = info.index;
      hardware.push_back(gpu);
      uuids.push_back(gpu.uuid);
    }
    remapped.push_back(info);
  }
  if (one_to_one) {
    candidates.probe.gpus = hardware;
  } else if (!candidates.probe.gpus.empty()) {
    uuids = {candidates.probe.gpus[0].uuid};
  }
  if (candidates.real) {
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    setenv("CUDA_VISIBLE_DEVICES", join(uuids, ",").c_str(), 1);
  }
  return remapped;
}

void enable_memory_growth([[maybe_unused]] const Candidates& candidates) {
#ifdef TANDEM_WITH_CUDA
  // A choice the user made in LibTorch's own variable stands.
  if (candidates.real && !variable("PYTORCH_CUDA_ALLOC_CONF") && !variable("PYTORCH_ALLOC_CONF")) {
    c10::CachingAllocator::setAllocatorSettings("expandable_segments:True");
  }
#endif
  // Simulated devices take memory from the host as tensors ask for it: they grow by nature.
}

}  // namespace tandem
