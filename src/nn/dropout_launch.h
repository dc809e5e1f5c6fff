// The GPU side of dropout.cpp.
#pragma once

#include <ATen/core/TensorBody.h>

namespace tandem {

// `step` [] int64 on the device; bits below `limit` give 0, the others `kept`.
void dropout_factors_cuda(at::Tensor& factors, uint64_t key, const at::Tensor& step, uint32_t limit,
                          float kept);

}  // namespace tandem
