#include "nn/rows/packed_weight.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>

namespace tandem {

at::ScalarType type_of(RowHalf half) { return half == RowHalf::fp16 ? at::kHalf : at::kBFloat16; }

// [n / 8, k / 32, n % 8, k % 8 / 2, k % 32 / 8, k % 2]
at::Tensor pack_weight(const at::Tensor& weight, int64_t inner, at::ScalarType type) {
  const int64_t columns = padded_to(weight.size(1), 8);
  at::Tensor padded = at::zeros({inner, columns}, weight.options().device(at::kCUDA));
  padded.narrow(0, 0, weight.size(0)).narrow(1, 0, weight.size(1)).copy_(weight);
  return padded.clamp(-65504, 65504)
      .to(type)
      .view({inner / 32, 4, 4, 2, columns / 8, 8})  // k: 32s, 8s, pairs, 2; n: 8s, 8
      .permute({4, 0, 5, 2, 1, 3})
      .contiguous();
}

}  // namespace tandem
#endif
