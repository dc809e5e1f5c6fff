// The table of layers that launch_whole_step reads, on the current CUDA device.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>

#include <vector>

#include "nn/rows/whole_step.h"

namespace tandem {

at::Tensor whole_step_layers(const std::vector<WholeStepLayer>& layers);

}  // namespace tandem
#endif
