#include "observe/product_rate.h"

#include <ATen/ATen.h>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "train/stages/low_precision.h"
#include "util/clock.h"

namespace tandem {

double product_rate(LogicalDevice& device, const std::string& precision) {
  at::NoGradGuard no_gradients;
  DeviceScope scope(device);
  set_precision(precision, false);
  const bool cuda = device.kind() == DeviceKind::cuda;
  const int64_t side = cuda ? 8192 : 512;
  const at::Tensor a =
      at::ones({side, side}, scope.options().dtype(compute_type(precision, device)));
  at::Tensor product = at::empty_like(a);
  at::mm_out(product, a, a);
  device.compute_stream().synchronize();
  const auto start = Clock::now();
  int64_t rounds = 0;
  do {
    for (int i = 0; i < 10; ++i) at::mm_out(product, a, a);
    device.compute_stream().synchronize();
    rounds += 10;
  } while (seconds_since(start) < 0.2);
  const auto n = static_cast<double>(side);
  return 2 * n * n * n * static_cast<double>(rounds) / seconds_since(start);
}

}  // namespace tandem
