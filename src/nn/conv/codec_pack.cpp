#ifdef TANDEM_WITH_CUDA
#include "nn/conv/codec_pack.h"

#include <ATen/ATen.h>

#include "nn/conv/codec_kernels.h"

namespace tandem {
namespace {

at::Tensor to_half_weight(const at::Tensor& weight) {
  return weight.clamp(-65504, 65504).to(at::kHalf);
}

// [taps, in, out] to the order of packed_conv_index (conv_kernels.h).
PackedCodecConv pack_taps(const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t taps = weight.size(0), in = weight.size(1), out = weight.size(2);
  const at::Tensor packed = to_half_weight(weight)
                                .reshape({taps, in / 32, 4, 4, 2, out / 8, 8})
                                .permute({0, 1, 5, 6, 3, 2, 4})
                                .contiguous();
  return {packed,
          bias.contiguous(),
          static_cast<int>(in),
          static_cast<int>(out),
          static_cast<int>(taps),
          static_cast<int>(taps - 1 - (taps - 1) / 2)};
}

}  // namespace

at::Tensor codec_floats(const at::Tensor& x) {
  return x.detach().to(at::TensorOptions(at::kCUDA).dtype(at::kFloat)).contiguous();
}

PackedCodecConv pack_codec_conv(const at::Tensor& weight, const at::Tensor& bias) {
  return pack_taps(codec_floats(weight).permute({2, 1, 0}), codec_floats(bias));
}

PackedCodecConv pack_codec_transposed(const at::Tensor& weight, const at::Tensor& bias,
                                      int64_t rate) {
  const int64_t in = weight.size(0), out = weight.size(1);
  // Position t * rate + phase hears input t by weight `phase` and t - 1 by `phase` + rate.
  const at::Tensor halves =
      codec_floats(weight).reshape({in, out, 2, rate}).permute({2, 0, 3, 1}).flip(0);
  return pack_taps(halves.reshape({2, in, rate * out}), codec_floats(bias));
}

PackedCodecLstm pack_codec_lstm(const at::Tensor& input, const at::Tensor& hidden,
                                const at::Tensor& input_bias, const at::Tensor& hidden_bias) {
  const int64_t width = hidden.size(1), blocks = width / codec_lstm_units;
  const at::Tensor columns = codec_floats(input).view({4, width, width}).permute({2, 1, 0});
  const at::Tensor bias = codec_floats(input_bias) + codec_floats(hidden_bias);
  // A block's 64 rows are [unit, gate]: 2 groups of 2 tiles of 16. Lanes hold what mma.m16n8k16
  // wants of its first operand: rows g and g + 8, columns 2q and 2q + 1, and those 8 behind.
  const at::Tensor packed = to_half_weight(codec_floats(hidden))
                                .view({4, blocks, codec_lstm_units, width})
                                .permute({1, 2, 0, 3})
                                .reshape({blocks, 2, 2, 2, 8, 8, width / 128, 2, 4, 2})
                                .permute({0, 1, 5, 2, 6, 4, 8, 7, 3, 9})
                                .contiguous();
  return {
      pack_taps(columns.reshape({1, width, 4 * width}), bias.view({4, width}).t().reshape({-1})),
      packed};
}

}  // namespace tandem
#endif
