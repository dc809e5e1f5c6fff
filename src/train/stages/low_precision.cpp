#include "train/stages/low_precision.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include "device/logical_device.h"

namespace tandem {

at::ScalarType compute_type(const std::string& precision, const LogicalDevice& device) {
  if (device.kind() != DeviceKind::cuda) return at::kFloat;
  if (precision == "bf16") return at::kBFloat16;
  if (precision == "fp16") return at::kHalf;
  return at::kFloat;
}

LowPrecision::LowPrecision(const std::string& precision, const LogicalDevice& device) {
  const at::ScalarType type = compute_type(precision, device);
  if (type == at::kFloat) return;
  on_ = true;
  was_on_ = at::autocast::is_autocast_enabled(at::kCUDA);
  before_ = at::autocast::get_autocast_dtype(at::kCUDA);
  cached_ = at::autocast::is_autocast_cache_enabled();
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  at::autocast::set_autocast_dtype(at::kCUDA, type);
  // A captured pass must cast the weights anew each time.
  at::autocast::set_autocast_cache_enabled(false);
}

LowPrecision::~LowPrecision() {
  if (!on_) return;
  at::autocast::set_autocast_enabled(at::kCUDA, was_on_);
  at::autocast::set_autocast_dtype(at::kCUDA, before_);
  at::autocast::set_autocast_cache_enabled(cached_);
}

void set_precision(const std::string& precision, bool deterministic) {
  at::globalContext().setAllowTF32CuBLAS(precision != "fp32");
  at::globalContext().setAllowTF32CuDNN(precision != "fp32");
  if (!deterministic) return;
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  at::globalContext().setBenchmarkCuDNN(false);
  // Memory that nobody has written yet is not looked at by us, and not a number where it is filled.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

}  // namespace tandem
