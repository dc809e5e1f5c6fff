#include "observe/tune_device.h"

#include <algorithm>

#include "device/registry.h"

#ifdef TANDEM_WITH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace tandem {
namespace {

double peak_of(LogicalDevice& device) {
  auto peak = static_cast<double>(device.memory().peak());
#ifdef TANDEM_WITH_CUDA
  // Parts of a split GPU share one cache, which says nothing of any of them.
  if (device.kind() == DeviceKind::cuda && device.info().memory_limit == 0) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(
        static_cast<c10::DeviceIndex>(device.info().cuda_index));
    peak = std::max(peak, static_cast<double>(stats.reserved_bytes[0].peak));
  }
#endif
  return peak;
}

}  // namespace

double memory_limit_of(LogicalDevice& device) {
  const auto limit = static_cast<double>(device.info().memory_limit);
  if (device.kind() != DeviceKind::cuda) return limit;
  const std::vector<GpuInfo>& gpus = DeviceRegistry::get().probe().gpus;
  const auto index = static_cast<size_t>(device.info().cuda_index);
  if (index >= gpus.size()) return limit;
  const double free =
      static_cast<double>(gpus[index].memory_total) - static_cast<double>(gpus[index].memory_used);
  return limit > 0 ? std::min(limit, free) : free;
}

DeviceFill fullest_device(const std::vector<LogicalDevice*>& devices) {
  DeviceFill fullest;
  double most = -1;
  for (LogicalDevice* device : devices) {
    const DeviceFill fill{device->name(), peak_of(*device), memory_limit_of(*device)};
    const double share = fill.limit_bytes > 0 ? fill.peak_bytes / fill.limit_bytes : 0;
    const bool more = share > most || (share == most && fill.peak_bytes > fullest.peak_bytes);
    if (!more) continue;
    most = share;
    fullest = fill;
  }
  return fullest;
}

}  // namespace tandem
