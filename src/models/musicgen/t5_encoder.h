// T5's encoder: reads a caption. Always in float32 (half overflows). Names are those of
// transformers' files.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "models/musicgen/musicgen_config.h"
#include "models/xtts/xtts_parameters.h"
#include "nn/parameters.h"

namespace tandem {

struct T5Encoder {
  struct Block {
    at::Tensor norm_attention, norm_inner;     // [D]
    at::Tensor query, key, value, output;      // [H * W, D] and [D, H * W]
    at::Tensor expand, expand_gate, contract;  // [inner, D], [inner, D] when gated, [D, inner]
  };
  T5Size size;
  at::Tensor embedding;      // [vocabulary, D]
  at::Tensor position_bias;  // [buckets, H], of all blocks
  std::vector<Block> blocks;
  at::Tensor last_norm;  // [D]

  // Names behind `prefix`, which is `text_encoder.` in files.
  static T5Encoder load(Weights& weights, const std::string& prefix, const T5Size& size);
  static T5Encoder make(const T5Size& size, uint64_t seed);
  void visit(const std::string& prefix, const VisitParameter& visit);
  void list(const std::string& prefix, const ListTensor& list);

  // ids [B, S] int64 and mask [B, S] (1: a token, 0: padding) -> states [B, S, D], on the device of
  // the weights. For results that do not depend on other captions give each alone, unpadded.
  at::Tensor operator()(const at::Tensor& ids, const at::Tensor& mask) const;
};

}  // namespace tandem
