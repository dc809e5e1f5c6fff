// Products of the enclosed operations in bfloat16 or float16, sums and norms in float32 (LibTorch's
// autocast), where the setting asks for it and the device is a GPU.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>

namespace tandem {

class LogicalDevice;

class LowPrecision {
 public:
  LowPrecision(const std::string& precision, const LogicalDevice& device);
  ~LowPrecision();
  LowPrecision(const LowPrecision&) = delete;
  LowPrecision& operator=(const LowPrecision&) = delete;

 private:
  bool on_ = false, was_on_ = false, cached_ = false;
  at::ScalarType before_ = at::kFloat;
};

// The type products are made in on this device: float32 on the CPU whatever was asked for.
at::ScalarType compute_type(const std::string& precision, const LogicalDevice& device);

// Settings of the whole process: TF32, and deterministic algorithms only. Once, before training.
void set_precision(const std::string& precision, bool deterministic);

}  // namespace tandem
