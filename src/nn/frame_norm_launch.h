// The GPU side of frame_norm.cpp. Statistics are [B, groups, 2] float32: mean and 1 / deviation.
#pragma once

#include <ATen/core/TensorBody.h>

namespace tandem {

void frame_norm_forward_cuda(const at::Tensor& x, const at::Tensor& lengths,
                             const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out,
                             at::Tensor& statistics);
// `scales` [2, B, D] float32: what weight and bias get from each row.
void frame_norm_backward_cuda(const at::Tensor& gradient, const at::Tensor& x,
                              const at::Tensor& lengths, const at::Tensor& weight,
                              const at::Tensor& statistics, at::Tensor& x_gradient,
                              at::Tensor& scales);

}  // namespace tandem
