#include "nn/rows/whole_step_layers.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>

#include <cstring>

namespace tandem {

WholeStepMemory::WholeStepMemory(const std::vector<WholeStepLayer>& layers)
    : count_(static_cast<int64_t>(layers.size())) {
  const auto bytes = static_cast<int64_t>(layers.size() * sizeof(WholeStepLayer));
  const at::Tensor table = at::empty({bytes}, at::TensorOptions().dtype(at::kByte));
  std::memcpy(table.mutable_data_ptr(), layers.data(), static_cast<size_t>(bytes));
  layers_ = table.to(at::kCUDA);
  const auto ints = at::TensorOptions(at::kCUDA).dtype(at::kInt);
  words_ = at::full({whole_step_words(count_)}, -1, ints);
  turn_ = at::zeros({1}, ints);
}

WholeStep WholeStepMemory::call() const {
  return {.layers = static_cast<int>(count_),
          .layer = static_cast<const WholeStepLayer*>(layers_.const_data_ptr()),
          .words = reinterpret_cast<uint32_t*>(words_.mutable_data_ptr<int32_t>()),
          .turn = reinterpret_cast<uint32_t*>(turn_.mutable_data_ptr<int32_t>())};
}

}  // namespace tandem
#endif
