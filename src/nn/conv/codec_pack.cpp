#ifdef TANDEM_WITH_CUDA
#include "nn/conv/codec_pack.h"

#include <ATen/ATen.h>

#include "nn/conv/codec_kernels.h"

namespace tandem {

PackedCodecLstm pack_codec_lstm(const at::Tensor& input, const at::Tensor& hidden,
                                const at::Tensor& input_bias, const at::Tensor& hidden_bias,
                                bool hopper) {
  const int64_t width = hidden.size(1), blocks = width / codec_lstm_units;
  const auto by_unit = [&](const at::Tensor& rows) {  // [gate, unit, ...] to [unit, gate, ...]
    return rows.view({4, width, -1}).transpose(0, 1).reshape({4 * width, -1});
  };
  const at::Tensor bias = conv_floats(input_bias) + conv_floats(hidden_bias);
  // A block's 64 rows are [unit, gate]: 2 groups of 2 tiles of 16. Lanes hold what mma.m16n8k16
  // wants of its first operand: rows g and g + 8, columns 2q and 2q + 1, and those 8 behind.
  const at::Tensor packed = conv_halves(conv_floats(hidden))
                                .view({4, blocks, codec_lstm_units, width})
                                .permute({1, 2, 0, 3})
                                .reshape({blocks, 2, 2, 2, 8, 8, width / 128, 2, 4, 2})
                                .permute({0, 1, 5, 2, 6, 4, 8, 7, 3, 9})
                                .contiguous();
  return {pack_conv(by_unit(conv_floats(input)).unsqueeze(-1), by_unit(bias).view({-1}), hopper),
          packed};
}

}  // namespace tandem
#endif
