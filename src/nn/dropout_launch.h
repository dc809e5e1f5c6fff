// The GPU side of dropout.cpp.
#pragma once

#include <ATen/core/TensorBody.h>

namespace tandem {

struct DropoutDraw {
  uint64_t key;
  at::Tensor step;  // [] int64 on the device
  at::Tensor rows;  // [B] int64 on the device, or undefined
  int64_t each;     // numbers of a row
};
// Drawn bits below `limit` give 0, the others `kept`.
void dropout_factors_cuda(at::Tensor& factors, const DropoutDraw& draw, uint32_t limit, float kept);

}  // namespace tandem
