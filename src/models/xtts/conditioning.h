// Reference mels to the GPT's prefix: a 1x1 convolution, attention blocks over all frames, and a
// perceiver that reads them with 32 learned queries. Float32, but for weights that training keeps
// in bfloat16.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "models/xtts/xtts_config.h"
#include "models/xtts/xtts_parameters.h"

namespace tandem {

struct Conditioning {
  struct Size {
    int64_t width = 1024, mels = 80, blocks = 6;
    int64_t heads = 16;  // of the blocks: the GPT's
    int64_t latents = 32, layers = 2;
    int64_t inner = 512;    // of the perceiver's attention: heads of 64
    int64_t hidden = 2730;  // of its feed-forward part: 8/3 of the width
  };
  struct Attention {
    at::Tensor norm_weight, norm_bias;        // GroupNorm [D]
    at::Tensor qkv_weight, qkv_bias;          // [3D, D, 1], [3D], per head q, k, v
    at::Tensor project_weight, project_bias;  // [D, D, 1]
  };
  struct PerceiverLayer {
    at::Tensor to_q, to_kv, to_out;             // [512, D], [1024, D], [D, 512]
    at::Tensor expand_weight, expand_bias;      // [2F, D]
    at::Tensor contract_weight, contract_bias;  // [D, F]
  };
  Size size;
  at::Tensor init_weight, init_bias;  // [D, 80, 1]
  std::vector<Attention> blocks;
  at::Tensor latents;  // [32, D]
  std::vector<PerceiverLayer> layers;
  at::Tensor gamma;  // RMSNorm [D]

  // Sizes come from the shapes. Names `conditioning_encoder.…`, `conditioning_perceiver.…` after
  // `prefix` (`gpt.`).
  static Conditioning load(Weights& weights, const std::string& prefix, int64_t heads);
  static Conditioning make(const XttsConfig& config, uint64_t seed);
  void visit(const std::string& prefix, const VisitParameter& visit);
  void list(const std::string& prefix, const ListTensor& tensor);  // of this `size`
  static Size size_of(const XttsConfig& config);

  // Divided by mel_stats already. [B, 80, frames] -> [B, 32, D]. With `lengths` [B] int64, on the
  // device, a row's frames from there on are padding: they change nothing, as if the row were
  // alone. A row of length 0 gives numbers without meaning, but numbers.
  at::Tensor operator()(const at::Tensor& mels, const at::Tensor& lengths = {}) const;
};

// 32, fewer for narrow layers, halved until they divide the width: 8 of 280.
int64_t norm_groups(int64_t width);

}  // namespace tandem
