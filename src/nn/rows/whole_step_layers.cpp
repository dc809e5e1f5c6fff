#include "nn/rows/whole_step_layers.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>

#include <cstring>

namespace tandem {

at::Tensor whole_step_layers(const std::vector<WholeStepLayer>& layers) {
  const auto bytes = static_cast<int64_t>(layers.size() * sizeof(WholeStepLayer));
  at::Tensor table = at::empty({bytes}, at::TensorOptions().dtype(at::kByte));
  std::memcpy(table.mutable_data_ptr(), layers.data(), static_cast<size_t>(bytes));
  return table.to(at::kCUDA);
}

}  // namespace tandem
#endif
