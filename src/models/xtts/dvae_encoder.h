// The part of XTTS's discrete VAE that turns mels into codes: convolutions of stride 2, residual
// blocks, and the nearest vector of a codebook. Sizes come from the tensors' own shapes.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/tensor_file.h"
#include "checkpoint/weights.h"
#include "models/xtts/xtts_config.h"
#include "models/xtts/xtts_parameters.h"

namespace tandem {

struct DvaeEncoder {
  struct Convolution {
    at::Tensor weight, bias;  // [out, in, width], [out]
  };
  struct Residual {
    Convolution first, second, third;
  };
  struct Size {
    int64_t mels = 80;
    std::vector<int64_t> widths = {512, 1024};  // of the strided convolutions
    int64_t kernel = 3, blocks = 3;
    int64_t vector = 512, codes = 1024;
  };
  Size size;
  std::vector<Convolution> strided;  // each followed by a ReLU, halves the frames
  std::vector<Residual> residual;
  Convolution last;
  at::Tensor codebook;   // [width, codes]
  at::Tensor mel_stats;  // [mels], the mels' divisor; undefined: none

  // From a safetensors or .pth file with the names of dvae.pth (`encoder.0.0.weight`,
  // `codebook.embed`, …). Throws Error(io), or Error(corrupt) that lists what is missing.
  static DvaeEncoder load(const std::string& path);
  void list(const std::string& prefix, const ListTensor& tensor);  // of this `size`
  static Size size_of(const Weights& weights, const std::string& prefix);
  static Size size_of(const XttsConfig& config);
  // What stands before `codebook.embed` in the file: "" of dvae.pth, "model/dvae." of a trainer's
  // checkpoint.
  static std::string prefix_in(const TensorFile& file);

  int64_t mels() const { return strided.front().weight.size(1); }
  int64_t codes_of(int64_t frames) const;
  at::Tensor codes(const at::Tensor& log_mels) const;  // [B, mels, F] -> [B, codes_of(F)] int64

  // Its steps: divided by mel_stats; [B, T, width]; the nearest of the codebook.
  at::Tensor scale(const at::Tensor& log_mels) const;
  at::Tensor vectors(const at::Tensor& scaled_mels) const;
  at::Tensor nearest(const at::Tensor& vectors) const;
};

// What encoder and decoder share: "same" convolutions, and residual blocks.
at::Tensor convolve(const DvaeEncoder::Convolution& layer, const at::Tensor& x, int64_t stride = 1);
at::Tensor pass(const DvaeEncoder::Residual& block, const at::Tensor& x);
void list_convolution(const std::string& name, DvaeEncoder::Convolution& layer, const Shape& shape,
                      const ListTensor& tensor);
void list_residual(const std::string& name, DvaeEncoder::Residual& block, int64_t width,
                   const ListTensor& tensor);

}  // namespace tandem
