// Weights of convolutions in the order in which the kernels (conv_kernels.h) read them: halves, on
// the current CUDA device. Queued on the current stream.
#pragma once

#include <ATen/core/TensorBody.h>

#include "nn/conv/conv_kernels.h"

namespace tandem {

// Channels are padded to multiples of 32 by zeros.
struct PackedConv {
  at::Tensor weight, bias;            // bias: one a channel of the output
  int64_t channels = 0, columns = 0;  // padded
  int taps = 1;
  bool hopper = false;

  // What follows from the weights; centred, the odd one on the left.
  ConvCall call() const;
};

// `hopper`: for warp-group products.
// [out, in, k]; the bias may be undefined.
PackedConv pack_conv(const at::Tensor& weight, const at::Tensor& bias, bool hopper);
// [in, out, 2 * rate]: each position hears two inputs. Columns are [phase, channel]; tap 0 is the
// input before.
PackedConv pack_transposed_conv(const at::Tensor& weight, const at::Tensor& bias, int64_t rate,
                                bool hopper);

// float32, contiguous, on the current CUDA device.
at::Tensor conv_floats(const at::Tensor& x);
// Within what a half can be.
at::Tensor conv_halves(const at::Tensor& weight);

}  // namespace tandem
