#ifdef TANDEM_WITH_CUDA
#include "nn/conv/conv_pack.h"

#include <ATen/ATen.h>

#include "nn/rows/row_kernels.h"

namespace tandem {
namespace {

int64_t padded(int64_t channels) { return padded_to(channels, 32); }

// [taps, in, phases, out] with the channels padded. Weights are kept by (tap, 32 channels of the
// input, 8 columns); within, mma.sync's lanes have theirs side by side, (column, pair of channels)
// by (8 channels, one of the pair); warp-group products read (8 channels, column, one of the 8).
PackedConv pack(const at::Tensor& weight, const at::Tensor& bias, bool hopper) {
  const int64_t taps = weight.size(0), in = weight.size(1), out = weight.size(3);
  const int64_t channels = padded(in), columns = weight.size(2) * padded(out);
  const at::Tensor full =
      at::zeros({taps, channels, weight.size(2), padded(out)}, weight.options());
  full.narrow(1, 0, in).narrow(3, 0, out).copy_(weight);
  const at::Tensor tiles = conv_halves(full).view({taps, channels / 32, 4, 4, 2, columns / 8, 8});
  const at::Tensor full_bias = at::zeros({padded(out)}, weight.options());
  if (bias.defined()) full_bias.narrow(0, 0, out).copy_(bias);
  return {.weight =
              (hopper ? tiles.permute({0, 1, 5, 2, 6, 3, 4}) : tiles.permute({0, 1, 5, 6, 3, 2, 4}))
                  .contiguous(),
          .bias = full_bias,
          .channels = channels,
          .columns = columns,
          .taps = static_cast<int>(taps),
          .hopper = hopper};
}

}  // namespace

at::Tensor conv_floats(const at::Tensor& x) {
  return x.detach().to(at::TensorOptions(at::kCUDA).dtype(at::kFloat)).contiguous();
}

at::Tensor conv_halves(const at::Tensor& weight) {
  return weight.clamp(-65504, 65504).to(at::kHalf);
}

PackedConv pack_conv(const at::Tensor& weight, const at::Tensor& bias, bool hopper) {
  return pack(conv_floats(weight).permute({2, 1, 0}).unsqueeze(2), bias, hopper);
}

PackedConv pack_transposed_conv(const at::Tensor& weight, const at::Tensor& bias, int64_t rate,
                                bool hopper) {
  // Position t * rate + phase hears input t by weight `phase` and t - 1 by `phase` + rate.
  const at::Tensor halves = conv_floats(weight)
                                .reshape({weight.size(0), weight.size(1), 2, rate})
                                .permute({2, 0, 3, 1})
                                .flip(0);
  return pack(halves, bias, hopper);
}

ConvCall PackedConv::call() const {
  ConvCall call;
  call.channels = static_cast<int>(channels);
  call.columns = static_cast<int>(columns);
  call.taps = taps;
  call.first = -(taps - 1 - (taps - 1) / 2);
  call.weight = weight.const_data_ptr();
  call.hopper = hopper;
  call.bias = bias.const_data_ptr<float>();
  return call;
}

}  // namespace tandem
#endif
