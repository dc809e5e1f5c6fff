// The memory of GptStep: what the backward pass needs of each layer, and work space that all layers
// share. P places, D width, H heads, S slots (the heads' inputs).
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>

#include <array>
#include <vector>

#include "nn/gpt_step/fp8.h"
#include "nn/gpt_step/gpt_kernels.h"
#include "nn/gpt_step/gpt_step.h"

namespace tandem {

struct GptSizes {
  int64_t layers = 0, width = 0, heads = 0;
  int64_t text_tokens = 0, audio_tokens = 0;
  // cuBLASLt is ten times slower where a size is no multiple of 8: heads are computed with so many
  // tokens, those beyond having weights of zero.
  static int64_t padded(int64_t tokens) { return (tokens + 31) / 32 * 32; }
};

enum Fp8Weight { fp8_qkv, fp8_project, fp8_expand, fp8_contract };

struct GptBuffers {
  GptBuffers(const GptSizes& sizes, const GptStepOptions& options);

  int64_t kept = 0;  // layers of which everything is kept: all, or one when recomputing
  int64_t most_slots = 0;

  at::Tensor x;                      // [layers + 1, P, D] the residual stream before each layer
  at::Tensor middle, qkv, attended;  // [kept, P, D], [kept, P, 3 D], [kept, P, D]
  at::Tensor before_gelu;            // [kept, P, 4 D]
  at::Tensor logsumexp;              // [kept, H * P] float32
  at::Tensor stats;                  // [layers, 2, P, 2] float32 of both norms

  at::Tensor branch;                 // [P, D]
  at::Tensor text_head, audio_head;  // [padded tokens, D], in `branch`, while it is not used
  at::Tensor text_head_bias, audio_head_bias;
  at::Tensor normed;                  // [max(P, S), D]
  at::Tensor flow, masked;            // [P, D] gradient of the residual stream; behind the mask
  at::Tensor wide;                    // [2, P, 4 D]
  at::Tensor logits;                  // bfloat16, in `wide`
  at::Tensor dots;                    // [H * P] float32
  at::Tensor head_inputs, head_flow;  // [S, D], the first in `normed`
  at::Tensor slot_losses, slot_hits;  // [S] float32
  at::Tensor partial;                 // float32, see below
  at::Tensor losses, hits, latents_gradient;
  at::Tensor recall;   // [2] like losses; the first means nothing
  at::Tensor numbers;  // int32, all of Packing

  // Partial sums of the backward passes of so many layers, finished together: a launch for each
  // layer would take longer than its work.
  static constexpr int64_t sum_slots = 5;
  struct LayerSums {
    float *first_norm = nullptr, *second_norm = nullptr;  // [sum_blocks, 3, D]
    float *expand = nullptr, *qkv_bias = nullptr;  // [expand_parts, 4 D], [column_parts, 3 D]
  };
  LayerSums layer_sums[sum_slots];
  int expand_parts = column_parts;
  float* head = nullptr;  // of the heads and last norms

  // In 8-bit floats, where those are used: what products read of the places; weights in the order
  // of Fp8Weight, for the forward pass turned, one layer's, and for the backward pass as they are,
  // of all kept layers.
  Fp8Rows fp8_normed, fp8_masked, fp8_wide;  // [P, D], [P, D], [P, 4 D]
  using Fp8Weights = std::array<Fp8Rows, 4>;
  Fp8Weights fp8_turned;
  std::vector<Fp8Weights> fp8_straight;
  at::Tensor fp8_largest;  // [layers, 16 D] float32: of the weights' columns and rows
  at::Tensor fp8_data, fp8_scales;

  Packing packing;
  uint64_t bytes = 0;

 private:
  at::Tensor take(at::IntArrayRef shape, at::ScalarType type);
  void take_fp8(const GptSizes& sizes, int64_t places);
};

}  // namespace tandem
#endif
