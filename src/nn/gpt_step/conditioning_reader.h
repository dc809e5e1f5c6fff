// The perceiver of ConditioningStep: learned queries read the encoder's frames, in layers of
// attention and a gated feed-forward part, and a norm by length at the end.
#pragma once

#include <ATen/core/TensorBody.h>

#include <vector>

#include "nn/gpt_step/conditioning_step.h"
#include "nn/gpt_step/step_ops.h"

namespace tandem {

class ConditioningReader {
 public:
  // Both must outlive it.
  ConditioningReader(const ConditioningStepWeights& weights, StepOps& ops);

  // x [B T, D] -> [B, N, D] float32.
  at::Tensor forward(const at::Tensor& x, const StepFrames& frames);
  // gradient [B, N, D] float32 -> that of x.
  at::Tensor backward(const at::Tensor& gradient, bool overwrites);

 private:
  struct LayerMemory {
    at::Tensor before, between;  // [B N, D] what attention and the feed-forward part read
    at::Tensor queries, both;    // [B N, I], [B (N + T), 2 I] keys and values
    StepOps::Read read;
    at::Tensor hidden, gated;     // [B N, 2 F], [B N, F]
    at::Tensor expand, contract;  // the weights, F filled up to a multiple of 8
  };
  void read_forward(const ConditioningStepLayer& layer, LayerMemory& kept);
  void feed_forward(const ConditioningStepLayer& layer, LayerMemory& kept);
  void feed_backward(const ConditioningStepLayer& layer, const LayerMemory& kept, bool overwrites);
  void read_backward(const ConditioningStepLayer& layer, const LayerMemory& kept, bool last,
                     bool overwrites);
  at::Tensor heads_of(const at::Tensor& x) const;
  at::Tensor rounded(const at::Tensor& x) const;
  at::Tensor latents_in(const at::Tensor& sources) const;

  const ConditioningStepWeights& weights_;
  StepOps& ops_;
  StepFrames frames_;
  at::Tensor stream_;   // [B N, D] float32; backward: its gradient
  at::Tensor sources_;  // [B (N + T), D] what keys and values are made from
  at::Tensor flow_;     // its gradient
  std::vector<LayerMemory> memory_;
};

}  // namespace tandem
