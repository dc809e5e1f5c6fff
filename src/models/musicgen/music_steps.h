// MusicGen's decoder run column by column in float32, with keys and values of earlier columns kept.
// The clips of a batch go in step. On the CPU a clip's logits do not depend on its company, on the
// number of threads, or on how many columns one call brings (see nn/rows/rows_cpu.h).
//
// With guidance every clip has a second place whose caption is nothing. Its cross-attention would
// read keys and values that are exactly zero, and no product has a bias: it adds nothing and is
// left out.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/musicgen/music_decoder.h"

namespace tandem {

// A decoder's weights on one device, [in, out] so that rows multiply from the left.
struct MusicStepWeights {
  struct Block {
    LayerNorm norm_self, norm_cross, norm_inner;
    at::Tensor qkv, project;                                // [D, 3D], [D, D]
    at::Tensor cross_query, cross_keyvalue, cross_project;  // [D, D], [D, 2D], [D, D]
    at::Tensor expand, contract;                            // [D, inner], [inner, D]
  };
  MusicDecoderSize size;
  std::vector<at::Tensor> embeddings;  // a codebook: [vocabulary + 1, D]
  at::Tensor positions;                // [positions, D]
  std::vector<Block> blocks;
  LayerNorm last_norm;
  at::Tensor heads;        // [D, K * vocabulary]
  Linear text_projection;  // undefined when the widths are equal
  at::Tensor zeros;        // what the row product takes for a bias
  static MusicStepWeights make(const MusicDecoder& decoder, const at::Device& device);
};

struct MusicLogits {
  at::Tensor cond, uncond;  // [B, K, vocabulary] float32 on the CPU; uncond undefined: no guidance
};

class MusicSteps {
 public:
  struct Options {
    bool guided = true;
    int64_t columns = 0;  // most that are ever fed
    bool keep = true;     // false: `advance` takes all columns each time and keeps nothing
    // Products and attention of whole batches by LibTorch: for GPUs, where rows have no kernels in
    // float32. Results then depend on the batch, by rounding.
    bool batched = false;
  };
  // `texts`: a clip's caption as the text encoder gives it, [S, width] on the weights' device;
  // undefined or empty: none. The weights must outlive this.
  MusicSteps(const MusicStepWeights& weights, const std::vector<at::Tensor>& texts,
             const Options& options);

  // tokens [B, K, T] int64: the next T columns -> logits behind the last of them.
  // Throws Error(config) when the model has no position for a column.
  MusicLogits advance(const at::Tensor& tokens);

 private:
  void read_texts(const std::vector<at::Tensor>& texts);
  at::Tensor projected(const at::Tensor& states) const;
  at::Tensor product(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor activated(at::Tensor x) const;
  at::Tensor attend(const at::Tensor& qkv, size_t layer, int64_t columns);
  at::Tensor attend_text(const at::Tensor& queries, size_t layer, int64_t columns) const;
  at::Tensor trunk(const at::Tensor& tokens);  // -> [places, D], behind the last column

  const MusicStepWeights& weights_;
  Options options_;
  int64_t clips_ = 0, places_ = 0, position_ = 0;
  std::vector<at::Tensor> keys_, values_;  // a layer: [places, H, columns, W]
  std::vector<int64_t> text_lengths_;
  at::Tensor text_mask_;                             // [B, 1, 1, S], batched only
  std::vector<at::Tensor> text_keys_, text_values_;  // a layer: [B, H, S, W]
};

}  // namespace tandem
