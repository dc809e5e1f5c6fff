// AdamW on flat buffers: one pass over weights, gradients and moments, on the CPU or a GPU. Whether
// a step happens at all is decided on the device, so that nothing waits for the host.
#pragma once

#include <ATen/core/TensorBody.h>

namespace tandem {

struct AdamWBuffers {
  at::Tensor weight;        // [n] float32, or bfloat16 with `low`
  at::Tensor low;           // [n] int16: what bfloat16 lacks of float32; undefined: none
  at::Tensor gradient;      // [n] float32, or of split weights also bfloat16
  at::Tensor mean, square;  // [n] float32
  at::Tensor average;       // [n] float32, moving average of the weights; undefined: none
  at::Tensor decays;        // [n / adamw_chunk] uint8: chunks with weight decay
};
constexpr int64_t adamw_chunk = 64;  // numbers; tensors start at multiples of it

struct AdamWRule {
  double beta1 = 0.9, beta2 = 0.96, epsilon = 1e-8, weight_decay = 0.01;
  double average_decay = 0;  // of the moving average, which forgets faster in its first steps
};

// On the device, [adamw_values] float32.
enum AdamWValue : int64_t {
  adamw_learning_rate,
  adamw_correction1,  // 1 - beta1^t
  adamw_correction2,  // 1 - beta2^t
  adamw_factor,       // gradients are multiplied by it: clipping, loss scale, accumulation
  adamw_average,      // decay of the moving average in this step
  adamw_good,         // 0: nothing changes but the gradients that are cleared in any case
  adamw_values
};

// The step, and the gradients are zero afterwards, but for those of split weights: whoever makes
// them overwrites them in the next step, and not clearing saves an eighth of the memory's time.
void adamw_step(const AdamWBuffers& buffers, const at::Tensor& values, const AdamWRule& rule);

// float32 as bfloat16 (rounded) and the int16 that makes it whole again, exactly.
void split_float(const at::Tensor& full, at::Tensor& high, at::Tensor& low);
at::Tensor join_float(const at::Tensor& high, const at::Tensor& low);

}  // namespace tandem
