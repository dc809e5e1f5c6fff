// StepOps by tensor operations, see there.
#pragma once

#include "nn/gpt_step/step_ops.h"

namespace tandem {

void cpu_multiply(const StepProduct& product);
void cpu_norm(const at::Tensor& x, const StepFrames& frames, const at::Tensor& weight,
              const at::Tensor& bias, const at::Tensor& out, const at::Tensor& statistics);
void cpu_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const StepFrames& frames,
                       const at::Tensor& weight, const at::Tensor& statistics,
                       const at::Tensor& x_gradient, const at::Tensor& partial);
void cpu_attend(const at::Tensor& qkv, const at::Tensor& starts, const at::Tensor& out);
void cpu_attend_backward(const at::Tensor& gradient, const at::Tensor& qkv,
                         const at::Tensor& starts, const at::Tensor& qkv_gradient);
at::Tensor cpu_read(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const at::Tensor& query_starts, const at::Tensor& key_starts);
std::vector<at::Tensor> cpu_read_backward(const at::Tensor& gradient, const at::Tensor& queries,
                                          const at::Tensor& keys, const at::Tensor& values,
                                          const at::Tensor& query_starts,
                                          const at::Tensor& key_starts);

}  // namespace tandem
