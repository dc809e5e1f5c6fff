// The part of XTTS's discrete VAE that turns mels into codes: convolutions of stride 2, residual
// blocks, and the nearest vector of a codebook. Sizes come from the tensors' own shapes.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct DvaeEncoder {
  struct Convolution {
    at::Tensor weight, bias;  // [out, in, width], [out]
  };
  struct Residual {
    Convolution first, second, third;
  };
  std::vector<Convolution> strided;  // each followed by a ReLU, halves the frames
  std::vector<Residual> residual;
  Convolution last;
  at::Tensor codebook;   // [width, codes]
  at::Tensor mel_stats;  // [mels], the mels' divisor; undefined: none

  // From a safetensors file with the names of dvae.pth (`encoder.0.0.weight`, `codebook.embed`, …).
  // Throws Error(io), or Error(corrupt) that lists what is missing.
  static DvaeEncoder load(const std::string& path);

  int64_t mels() const { return strided.front().weight.size(1); }
  int64_t codes_of(int64_t frames) const;
  at::Tensor codes(const at::Tensor& log_mels) const;  // [B, mels, F] -> [B, codes_of(F)] int64
};

}  // namespace tandem
