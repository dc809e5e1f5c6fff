// Weights of a codec's decoder in the order in which its kernels (codec_kernels.h) read them:
// halves, on the current CUDA device. Queued on the current stream.
#pragma once

#include <ATen/core/TensorBody.h>

namespace tandem {

// float32, contiguous, on the current CUDA device.
at::Tensor codec_floats(const at::Tensor& x);

struct PackedCodecConv {
  at::Tensor weight, bias;  // bias: one a channel of the output
  int channels = 0, columns = 0, taps = 1, pad = 0;
};
// [out, in, k]; padded on both sides, the odd one on the left.
PackedCodecConv pack_codec_conv(const at::Tensor& weight, const at::Tensor& bias);
// [in, out, 2 * rate]: each position hears two inputs. Columns are [phase, channel]; tap 0 is the
// input before.
PackedCodecConv pack_codec_transposed(const at::Tensor& weight, const at::Tensor& bias,
                                      int64_t rate);

struct PackedCodecLstm {
  PackedCodecConv input;  // columns [unit, gate], both biases
  at::Tensor hidden;
};
// [4C, C], [4C, C], [4C], [4C]; gates i f g o.
PackedCodecLstm pack_codec_lstm(const at::Tensor& input, const at::Tensor& hidden,
                                const at::Tensor& input_bias, const at::Tensor& hidden_bias);

}  // namespace tandem
