// The GPU side of adamw.cpp.
#pragma once

#include "nn/adamw.h"

namespace tandem {

void adamw_step_cuda(const AdamWBuffers& buffers, const at::Tensor& values, const AdamWRule& rule);
void split_float_cuda(const at::Tensor& full, at::Tensor& high, at::Tensor& low);
void join_float_cuda(const at::Tensor& high, const at::Tensor& low, at::Tensor& full);

}  // namespace tandem
