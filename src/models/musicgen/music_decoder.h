// MusicGen's decoder: a transformer over K rows of codes that reads the caption through
// cross-attention. No product has a bias. Positions are sinusoids, always computed, never read from
// the file. Names are those of transformers' files.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "models/musicgen/musicgen_config.h"
#include "models/xtts/xtts_parameters.h"
#include "nn/layers.h"
#include "nn/parameters.h"

namespace tandem {

struct MusicDecoder {
  struct Attention {
    at::Tensor query, key, value, output;  // [D, D], [out, in]
  };
  struct Block {
    LayerNorm norm_self, norm_cross, norm_inner;  // eps 1e-5
    Attention self, cross;
    at::Tensor expand, contract;  // [inner, D], [D, inner]
  };
  MusicDecoderSize size;
  std::vector<at::Tensor> embeddings;  // a codebook: [vocabulary + 1, D]
  std::vector<Block> blocks;
  LayerNorm last_norm;
  std::vector<at::Tensor> heads;  // a codebook: [vocabulary, D]
  Linear text_projection;         // enc_to_dec_proj; undefined when the widths are equal

  // `decoder.` and `enc_to_dec_proj.` behind `prefix`, which is empty in files.
  static MusicDecoder load(Weights& weights, const std::string& prefix,
                           const MusicDecoderSize& size, int64_t text_width);
  static MusicDecoder make(const MusicDecoderSize& size, int64_t text_width, uint64_t seed);
  void visit(const std::string& prefix, const VisitParameter& visit);
  void list(const std::string& prefix, const ListTensor& list, int64_t text_width);

  // [positions, D]: cosines, then sines, of position * 10000^(-i / (D / 2 - 1)).
  static at::Tensor sinusoids(int64_t positions, int64_t width);
};

}  // namespace tandem
