// The layers of a GPT as structs of tensors with a function each. Shapes: B sequences, T places, D
// width.
#pragma once

#include <ATen/core/TensorBody.h>

#include "nn/parameters.h"

namespace tandem {

struct Linear {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]
  static Linear make(uint64_t seed, const std::string& name, int64_t in, int64_t out,
                     double deviation);
  at::Tensor operator()(const at::Tensor& x) const;
  void visit(const std::string& name, const VisitParameter& visit);
};

struct LayerNorm {
  at::Tensor weight, bias;  // [D]
  static LayerNorm make(uint64_t seed, const std::string& name, int64_t width);
  at::Tensor operator()(const at::Tensor& x) const;
  void visit(const std::string& name, const VisitParameter& visit);
};

// Pre-norm block: x + attention(norm(x)), then x + mlp(norm(x)). Causal.
struct GptBlock {
  LayerNorm norm_attention, norm_mlp;
  Linear qkv, project, expand, contract;
  int64_t heads = 1;
  static GptBlock make(uint64_t seed, const std::string& name, int64_t width, int64_t heads,
                       int64_t layers);
  at::Tensor operator()(const at::Tensor& x) const;  // [B, T, D] -> [B, T, D]
  void visit(const std::string& name, const VisitParameter& visit);
};

}  // namespace tandem
