// XTTS's discrete VAE: mels to codes and back. XTTS itself needs the encoder and the codebook only;
// the decoder is there to be trained and heard.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <vector>

#include "models/xtts/dvae_encoder.h"
#include "models/xtts/xtts_config.h"
#include "models/xtts/xtts_parameters.h"

namespace tandem {

struct Dvae {
  using Convolution = DvaeEncoder::Convolution;
  using Residual = DvaeEncoder::Residual;
  DvaeEncoder encoder;  // with the codebook
  Convolution first;    // decoder.0: code vectors to the hidden width
  std::vector<Residual> residual;
  std::vector<Convolution> widening;  // each behind a repetition of every frame, and before a ReLU
  Convolution last;                   // to mels
  // Statistics of the codebook's training, [codes] and [width, codes]; undefined: not known.
  at::Tensor cluster_size, embed_avg;

  // safetensors or .pth, names of dvae.pth. Throws Error(io), or Error(corrupt) that lists what is
  // missing.
  static Dvae load(const std::string& path);
  static Dvae load(Weights& weights, const std::string& prefix);
  // Widths of `config`: codes of dvae_width, twice that inside. `codes` 0: those of `config`.
  static Dvae make(const XttsConfig& config, uint64_t seed, int64_t codes = 0);
  void visit(const std::string& prefix, const VisitParameter& visit);
  void list(const std::string& prefix, const ListTensor& tensor);
  static int64_t count_parameters(const XttsConfig& config);

  at::Tensor decode(const at::Tensor& codes) const;  // [B, T] -> [B, mels, 4 T], as log_mels
  struct Reconstruction {
    at::Tensor codes;       // [B, T]
    at::Tensor mels;        // [B, mels, 4 T], divided by mel_stats
    at::Tensor loss;        // mean square of what the mels lack
    at::Tensor commitment;  // mean square distance of the vectors to their codes
  };
  // With gradients through the quantiser (straight through). Frames must be a multiple of 4.
  Reconstruction reconstruct(const at::Tensor& log_mels) const;
};

}  // namespace tandem
