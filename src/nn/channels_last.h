// Convolutions over time of rows [B, C, T], in the order of memory that suits them.
//
// cuDNN convolves half-precision rows whose channels are beside each other in memory. Given others
// it turns them and their results around at every call; LibTorch's conv1d turns them back even when
// they come in order. Operations on single values keep the order that they find.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

// The same values; half-precision rows on a GPU get their channels beside each other.
at::Tensor channels_last(const at::Tensor& x);

struct RowConvOptions {
  int64_t stride = 1, padding = 0, dilation = 1;
};
// weight [out, C, k]; -> [B, out, T'], in the order of `x`.
at::Tensor conv_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const RowConvOptions& options = {});
// The transposed one: weight [C, out, k].
at::Tensor conv_rows_transposed(const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& bias, const RowConvOptions& options = {});

}  // namespace tandem
