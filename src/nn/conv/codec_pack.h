// Weights of a codec's LSTM in the order in which its kernels (codec_kernels.h) read them: halves,
// on the current CUDA device. Queued on the current stream.
#pragma once

#include "nn/conv/conv_pack.h"

namespace tandem {

struct PackedCodecLstm {
  PackedConv input;  // columns [unit, gate], both biases
  at::Tensor hidden;
};
// [4C, C], [4C, C], [4C], [4C]; gates i f g o.
PackedCodecLstm pack_codec_lstm(const at::Tensor& input, const at::Tensor& hidden,
                                const at::Tensor& input_bias, const at::Tensor& hidden_bias,
                                bool hopper);

}  // namespace tandem
