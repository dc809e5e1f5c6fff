// Weights as the row kernels read them.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>

#include "nn/rows/row_kernels.h"

namespace tandem {

at::ScalarType type_of(RowHalf half);

// weight [in, out] on any device -> on the current CUDA device, in the order of
// packed_weight_index; `inner` is `in` padded to a multiple of inner_block.
at::Tensor pack_weight(const at::Tensor& weight, int64_t inner, at::ScalarType type);

}  // namespace tandem
#endif
