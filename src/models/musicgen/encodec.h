// EnCodec: sound as frames of codes, and back. Weight norm is folded when it is loaded. Stereo
// MusicGen codes each channel by itself with this one-channel codec.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "models/musicgen/musicgen_config.h"
#include "models/xtts/xtts_parameters.h"
#include "nn/parameters.h"

namespace tandem {

struct EncodecConv {
  at::Tensor weight, bias;  // [out, in, k]; a transposed one [in, out, k]
  int64_t stride = 1, dilation = 1;
};
struct EncodecResidual {
  std::vector<EncodecConv> convs;  // an ELU before each
  EncodecConv shortcut;            // weight undefined: identity
};
struct EncodecLstm {
  struct Layer {
    at::Tensor input, hidden, input_bias, hidden_bias;  // [4C, C], [4C, C], [4C], [4C]; i f g o
  };
  std::vector<Layer> layers;
};

struct Encodec {
  EncodecSize size;
  struct Stage {
    EncodecConv scale;  // the transposed convolution of the decoder, the strided one of the encoder
    std::vector<EncodecResidual> residuals;
  };
  struct Half {
    EncodecConv first, last;
    std::vector<Stage> stages;
    EncodecLstm lstm;
  };
  Half decoder, encoder;              // the encoder's convolutions are undefined when not asked
  std::vector<at::Tensor> codebooks;  // [codebook_size, codebook_width] each

  // Names behind `prefix`, which is `audio_encoder.` in files; either naming of weight norm.
  static Encodec load(Weights& weights, const std::string& prefix, const EncodecSize& size,
                      bool with_encoder);
  static Encodec make(const EncodecSize& size, uint64_t seed);  // random, with encoder
  void visit(const std::string& prefix, const VisitParameter& visit);
  void list(const std::string& prefix, const ListTensor& list, bool with_encoder = true);

  // codes [B, K, frames] int64 -> sound [B, channels, frames * hop], float32. On the CPU each clip
  // is decoded by itself, so that its sound does not depend on the others'. Values may pass 1.
  at::Tensor decode(const at::Tensor& codes) const;
  // sound [B, channels, samples] -> codes [B, K, ceil(samples / hop)], of the first K codebooks.
  at::Tensor encode(const at::Tensor& sound, int64_t codebooks) const;
  // What the quantiser of `encode` sees: [B, frames, hidden]. FAD is taken on these.
  at::Tensor features(const at::Tensor& sound) const;
};

}  // namespace tandem
