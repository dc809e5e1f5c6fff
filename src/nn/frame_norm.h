// GroupNorm over frames that may be padding: mean and deviation of a group come from the row's real
// frames alone, and padding comes out as 0. One kernel each way on a GPU.
#pragma once

#include <ATen/core/TensorBody.h>

namespace tandem {

// x [B, T, D]; lengths [B] int64 on its device, 1 at least; weight and bias [D] float32. Of x's
// type, with gradients.
at::Tensor frame_norm(const at::Tensor& x, const at::Tensor& lengths, const at::Tensor& weight,
                      const at::Tensor& bias, int64_t groups);

}  // namespace tandem
