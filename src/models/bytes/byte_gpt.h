// A small GPT over the 256 bytes: the model of `--stage bytes`, which shows the whole machinery on
// any text.
#pragma once

#include <string>
#include <vector>

#include "nn/layers.h"

namespace tandem {

struct ByteGptSize {
  int64_t layers, width, heads, context;
};

// tiny, small, normal or big.
ByteGptSize byte_gpt_size(const std::string& name);

struct ByteGpt {
  ByteGptSize size{};
  at::Tensor byte_embedding;   // [256, D]
  at::Tensor place_embedding;  // [T, D]
  std::vector<GptBlock> blocks;
  LayerNorm final_norm;

  // On the device of the open DeviceScope.
  static ByteGpt make(const ByteGptSize& size, uint64_t seed);

  at::Tensor logits(const at::Tensor& tokens) const;  // [B, T] -> [B, T, 256]
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets) const;  // mean, nats a byte
  void visit(const VisitParameter& visit);
};

}  // namespace tandem
