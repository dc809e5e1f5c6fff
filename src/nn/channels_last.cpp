#include "nn/channels_last.h"

#include <ATen/ATen.h>

#include <array>

namespace tandem {
namespace {

bool is_half_on_gpu(const at::Tensor& x) { return x.is_cuda() && x.element_size() == 2; }

using Pair = std::array<int64_t, 2>;  // of a picture one place high

// A convolution whose taps are `apart` places apart is as many plain ones, each of its own places.
at::Tensor conv_apart(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      int64_t apart) {
  const int64_t rows = x.size(0), channels = x.size(1), places = x.size(2);
  const int64_t own = (places + apart - 1) / apart;
  const at::Tensor whole =
      at::constant_pad_nd(x.transpose(1, 2), {0, 0, 0, own * apart - places}, 0);
  const at::Tensor parts =
      whole.view({rows, own, apart, channels}).transpose(1, 2).reshape({-1, own, channels});
  const at::Tensor made =
      conv_rows(parts.transpose(1, 2), weight, bias, {.padding = (weight.size(2) - 1) / 2})
          .transpose(1, 2)
          .reshape({rows, apart, own, weight.size(0)});
  return made.transpose(1, 2)
      .reshape({rows, own * apart, -1})
      .narrow(1, 0, places)
      .contiguous()
      .transpose(1, 2);
}

// Where cuDNN 9 is slow on an H200: 39 ms for 16 rows of 256 channels and 1,288 places, seven wide
// and five apart (apart: 0.1 ms), 1.5 ms for gradients of most weights that reach as far (0.4 ms).
bool is_better_apart(const at::Tensor& weight, const RowConvOptions& o) {
  const int64_t reach = (weight.size(2) - 1) * o.dilation;
  return o.dilation > 1 && o.stride == 1 && 2 * o.padding == reach && reach >= 30 &&
         weight.size(1) >= 64;
}

}  // namespace

at::Tensor channels_last(const at::Tensor& x) {
  return is_half_on_gpu(x) ? x.transpose(1, 2).contiguous().transpose(1, 2) : x;
}

at::Tensor conv_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const RowConvOptions& o) {
  if (!is_half_on_gpu(x)) return at::conv1d(x, weight, bias, o.stride, o.padding, o.dilation);
  if (is_better_apart(weight, o)) return conv_apart(x, weight, bias, o.dilation);
  const Pair stride{1, o.stride}, padding{0, o.padding}, dilation{1, o.dilation};
  return at::conv2d(x.unsqueeze(2), weight.unsqueeze(2), bias, stride, at::IntArrayRef(padding),
                    dilation)
      .squeeze(2);
}

at::Tensor conv_rows_transposed(const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& bias, const RowConvOptions& o) {
  if (!is_half_on_gpu(x))
    return at::conv_transpose1d(x, weight, bias, o.stride, o.padding, 0, 1, o.dilation);
  const Pair stride{1, o.stride}, padding{0, o.padding}, none{0, 0}, dilation{1, o.dilation};
  return at::conv_transpose2d(x.unsqueeze(2), weight.unsqueeze(2), bias, stride, padding, none, 1,
                              dilation)
      .squeeze(2);
}

}  // namespace tandem
