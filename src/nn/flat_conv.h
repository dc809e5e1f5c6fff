// One-dimensional convolutions of rows with channels last, as matrix products over windows that
// overlap in memory: rows stand behind each other with the convolution's padding between them, so a
// window of k places is k * channels numbers in a row, and every k-th window (the others are
// products of their own, in the same call) gives a matrix that a product reads without any copy.
// Groups are matrices of their own, narrow ones joined to some. The gradient of the input is the
// same with the output's gradient as the rows. For convolutions whose own kernels are slow: many
// groups, long windows.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

struct FlatConvOptions {
  int64_t stride = 1, groups = 1;
  double slope = 1;  // of a leaky ReLU behind it; 1: none
};

// x [B, T, C]; weight [out, C / groups, k] and bias [out] in its type, k odd and at least the
// stride; padded by (k - 1) / 2 on both sides. -> [B, T', out], with gradients; those of weights
// are summed in float32. Throws Error(internal) for shapes that do not fit each other.
at::Tensor flat_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const FlatConvOptions& options);

}  // namespace tandem
