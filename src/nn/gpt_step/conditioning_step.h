// One training pass of XTTS's conditioning encoder and perceiver, forward and backward by hand, as
// GptStep does it for the GPT: channels last from end to end, a block of the encoder is a norm, two
// products and an attention each way without anything in between, gradients go straight into their
// buffers. Padding has sequences of its own, which nobody reads and which get no gradients. On a
// GPU weights are bfloat16 and the encoder's values too; the perceiver's residual stream is
// float32. On the CPU (for tests) everything has the weights' type.
#pragma once

#include <ATen/core/TensorBody.h>

#include <memory>
#include <vector>

#include "nn/gpt_step/gpt_step.h"

namespace tandem {

struct ConditioningStepBlock {
  TrainedWeight norm_weight, norm_bias;        // [D]
  TrainedWeight qkv_weight, qkv_bias;          // [3D, D, 1], [3D], per head q, k, v
  TrainedWeight project_weight, project_bias;  // [D, D, 1], [D]
};
struct ConditioningStepLayer {
  TrainedWeight to_q, to_kv, to_out;             // [I, D], [2I, D], [D, I]
  TrainedWeight expand_weight, expand_bias;      // [2F, D], [2F]
  TrainedWeight contract_weight, contract_bias;  // [D, F], [D]
};
struct ConditioningStepWeights {
  TrainedWeight init_weight, init_bias;  // [D, mels, 1], [D]
  std::vector<ConditioningStepBlock> blocks;
  TrainedWeight latents;  // [N, D]
  std::vector<ConditioningStepLayer> layers;
  TrainedWeight gamma;                               // [D]
  int64_t heads = 16, groups = 32, head_width = 64;  // of blocks; of norms; of the perceiver
};

// Of weights in the order above: init, blocks, latents, layers, gamma.
ConditioningStepWeights conditioning_step_weights(const std::vector<TrainedWeight>& in_order,
                                                  size_t blocks, size_t layers);

class ConditioningStep {
 public:
  // Under the DeviceScope of the weights' device. The tensors must stay where they are. Throws
  // Error(internal) for widths that the kernels do not know.
  ConditioningStep(const ConditioningStepWeights& weights, bool tune);
  ~ConditioningStep();
  // Whether the kernels know these widths.
  static bool fits(int64_t width, int64_t heads, int64_t groups, int64_t inner);

  // mels [B, mels, T] float32, lengths [B] int64 (undefined: all frames are real) -> [B, N, D]
  // float32. What the backward pass needs is kept until it has run.
  at::Tensor forward(const at::Tensor& mels, const at::Tensor& lengths);
  // gradient [B, N, D] float32. Gradients of weights are added to, or overwritten.
  void backward(const at::Tensor& gradient, bool overwrites);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem
