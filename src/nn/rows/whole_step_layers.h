// What launch_whole_step needs of a model beside its rows, on the current CUDA device.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>

#include <vector>

#include "nn/rows/whole_step.h"

namespace tandem {

class WholeStepMemory {
 public:
  WholeStepMemory() = default;  // none
  explicit WholeStepMemory(const std::vector<WholeStepLayer>& layers);

  // With the layers and the words they hand over; the rest is the caller's to fill in.
  WholeStep call() const;

 private:
  int64_t count_ = 0;
  at::Tensor layers_, words_, turn_;
};

}  // namespace tandem
#endif
