#include "observe/profile_limits.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "util/clock.h"

namespace tandem {
namespace {

// Seconds of the fastest of a few rounds.
double best_of(LogicalDevice& device, int times, const std::function<void()>& work) {
  work();
  device.compute_stream().synchronize();
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < times; ++i) work();
    device.compute_stream().synchronize();
    best = std::min(best, seconds_since(start) / times);
  }
  return best;
}

}  // namespace

DeviceLimits measure_limits(LogicalDevice& device, const std::string& precision) {
  DeviceScope scope(device);
  at::NoGradGuard no_grad;
  const bool cuda = device.kind() == DeviceKind::cuda;
  const int64_t side = cuda ? 8192 : 512;
  // On the CPU low precision is slower than float32, and limits nothing.
  const at::ScalarType type = cuda && precision == "bf16"   ? at::kBFloat16
                              : cuda && precision == "fp16" ? at::kHalf
                                                            : at::kFloat;
  DeviceLimits limits;
  {
    const at::Tensor a = at::ones({side, side}, scope.options().dtype(type));
    at::Tensor c = at::empty_like(a);
    const double seconds = best_of(device, cuda ? 10 : 3, [&] { at::mm_out(c, a, a); });
    const auto n = static_cast<double>(side);
    limits.flops = 2 * n * n * n / seconds;
  }
  const int64_t bytes = cuda ? int64_t{1} << 30 : int64_t{64} << 20;
  const at::Tensor from = at::zeros({bytes}, scope.options().dtype(at::kByte));
  at::Tensor to = at::empty_like(from);
  const double seconds = best_of(device, cuda ? 5 : 2, [&] { to.copy_(from); });
  limits.bytes = 2 * static_cast<double>(bytes) / seconds;  // read and written
  return limits;
}

double share_of_limit(const DeviceLimits& limits, double flops, double bytes, double seconds) {
  if (seconds <= 0) return 0;
  const double computing = limits.flops > 0 ? flops / limits.flops : 0;
  const double moving = limits.bytes > 0 ? bytes / limits.bytes : 0;
  return std::max(computing, moving) / seconds;
}

}  // namespace tandem
