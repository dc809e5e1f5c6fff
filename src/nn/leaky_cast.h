// Leaky ReLU of float32 values for a product in a narrower type: one kernel each way on a GPU
// instead of two, and the backward pass keeps what the product keeps anyway.
#pragma once

#include <ATen/core/TensorBody.h>

namespace tandem {

// leaky_relu(x, slope) rounded to `type`, with gradients. 0 < slope.
at::Tensor leaky_cast(const at::Tensor& x, double slope, at::ScalarType type);

}  // namespace tandem
