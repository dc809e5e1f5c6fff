#include "nn/channels_last.h"

#include <ATen/ATen.h>

#include <array>

namespace tandem {
namespace {

bool is_half_on_gpu(const at::Tensor& x) { return x.is_cuda() && x.element_size() == 2; }

using Pair = std::array<int64_t, 2>;  // of a picture one place high

}  // namespace

at::Tensor channels_last(const at::Tensor& x) {
  return is_half_on_gpu(x) ? x.transpose(1, 2).contiguous().transpose(1, 2) : x;
}

at::Tensor conv_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const RowConvOptions& o) {
  if (!is_half_on_gpu(x)) return at::conv1d(x, weight, bias, o.stride, o.padding, o.dilation);
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
