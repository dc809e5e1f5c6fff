// The row kernels on the CPU, in float32: a row's result does not depend on the rows beside it nor
// on the number of threads, which a BLAS does not promise. See row_kernels.h for what rows are.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <vector>

namespace tandem {

// x [R, K] times weight [K, N] plus bias [N]; all contiguous float32. Products are added in the
// order of k.
at::Tensor row_product_cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// Attention of rows over positions 0 .. positions[r] of places[r]. queries [R, H, W];
// keys, values [P, H, C, W]. -> [R, H * W]
at::Tensor row_attention_cpu(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const std::vector<int64_t>& places,
                             const std::vector<int64_t>& positions);

}  // namespace tandem
