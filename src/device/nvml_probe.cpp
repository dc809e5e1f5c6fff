// NVML through dlopen: the few structures and constants below are its stable C interface (NVML API
// reference, CUDA 13), written out so that no NVIDIA header is needed to build.
#include <fmt/format.h>

#include <array>

#include "device/probe.h"
#include "device/shared_library.h"

namespace tandem {
namespace {

using Handle = void*;
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct Utilisation {
  unsigned int gpu, memory;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
constexpr unsigned temperature_gpu = 0;
constexpr unsigned p2p_caps_read = 0, p2p_caps_nvlink = 2, p2p_ok = 0;
constexpr int success = 0;

template <size_t size>
std::string text_of(const SharedLibrary& nvml, const char* function, Handle device) {
  std::array<char, size> buffer{};
  const int status = nvml.call(function, device, buffer.data(), static_cast<unsigned>(size));
  return status == success ? std::string(buffer.data()) : std::string();
}

void read_state(const SharedLibrary& nvml, Handle device, GpuInfo& gpu) {
  MemoryInfo memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", device, &memory) == success) {
    gpu.memory_total = memory.total;
    gpu.memory_used = memory.used;
  }
  Utilisation load{};
  if (nvml.call("nvmlDeviceGetUtilizationRates", device, &load) == success) {
    gpu.utilisation = static_cast<int>(load.gpu);
  }
  unsigned value = 0;
  if (nvml.call("nvmlDeviceGetTemperature", device, temperature_gpu, &value) == success) {
    gpu.temperature = static_cast<int>(value);
  }
  if (nvml.call("nvmlDeviceGetPowerUsage", device, &value) == success) gpu.power = value / 1000.0;
  int major = 0, minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == success) {
    gpu.compute_capability = fmt::format("{}.{}", major, minor);
  }
  PciInfo pci{};
  if (nvml.call("nvmlDeviceGetPciInfo_v3", device, &pci) == success) gpu.pci_bus = pci.bus_id;
}

GpuInfo read_gpu(const SharedLibrary& nvml, Handle device) {
  GpuInfo gpu;
  gpu.name = text_of<96>(nvml, "nvmlDeviceGetName", device);
  gpu.uuid = text_of<96>(nvml, "nvmlDeviceGetUUID", device);
  read_state(nvml, device, gpu);
  return gpu;
}

// A GPU in MIG mode cannot be used whole: its instances take its place in the list.
std::vector<Handle> mig_instances(const SharedLibrary& nvml, Handle device) {
  unsigned current = 0, pending = 0, most = 0;
  std::vector<Handle> instances;
  if (nvml.call("nvmlDeviceGetMigMode", device, &current, &pending) != success || current == 0) {
    return instances;
  }
  nvml.call("nvmlDeviceGetMaxMigDeviceCount", device, &most);
  for (unsigned i = 0; i < most; ++i) {
    Handle instance = nullptr;
    if (nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &instance) == success) {
      instances.push_back(instance);
    }
  }
  return instances;
}

void read_peers(const SharedLibrary& nvml, const std::vector<Handle>& handles, GpuProbe& probe) {
  for (size_t a = 0; a < handles.size(); ++a) {
    for (size_t b = 0; b < handles.size(); ++b) {
      if (a == b) continue;
      unsigned status = ~0u;
      const auto asks = [&](unsigned what) {
        return nvml.call("nvmlDeviceGetP2PStatus", handles[a], handles[b], what, &status) ==
                   success &&
               status == p2p_ok;
      };
      if (!asks(p2p_caps_read)) continue;
      probe.gpus[a].peers.push_back(static_cast<int>(b));
      if (asks(p2p_caps_nvlink)) probe.gpus[a].nvlinks.push_back(static_cast<int>(b));
    }
  }
}

}  // namespace

std::optional<GpuProbe> probe_with_nvml(const std::string& library) {
  const SharedLibrary nvml(library);
  if (!nvml || nvml.call("nvmlInit_v2") != success) return std::nullopt;
  GpuProbe probe;
  probe.source = "nvml";
  std::array<char, 96> driver{};
  nvml.call("nvmlSystemGetDriverVersion", driver.data(), static_cast<unsigned>(driver.size()));
  probe.driver_version = driver.data();
  int cuda = 0;
  if (nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == success) {
    probe.cuda_version = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  }
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  std::vector<Handle> handles;
  for (unsigned i = 0; i < count; ++i) {
    Handle whole = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &whole) != success) continue;
    const std::vector<Handle> instances = mig_instances(nvml, whole);
    if (instances.empty()) {
      handles.push_back(whole);
      probe.gpus.push_back(read_gpu(nvml, whole));
    }
    for (Handle instance : instances) {
      handles.push_back(instance);
      probe.gpus.push_back(read_gpu(nvml, instance));
      probe.gpus.back().mig_parent = text_of<96>(nvml, "nvmlDeviceGetUUID", whole);
    }
  }
  for (size_t i = 0; i < probe.gpus.size(); ++i) probe.gpus[i].index = static_cast<int>(i);
  read_peers(nvml, handles, probe);
  nvml.call("nvmlShutdown");
  return probe;
}

}  // namespace tandem
