// H/ASP: a ResNet with squeeze-and-excitation over 64 log mels, and attentive statistics pooling.
// Gives the speaker embedding the vocoder is told. Always float32.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "models/xtts/xtts_config.h"
#include "models/xtts/xtts_parameters.h"

namespace tandem {

struct SpeakerEncoder {
  struct Size {
    int64_t mels = 64, embedding = 512;
    std::vector<int64_t> widths = {32, 64, 128, 256};  // of the stages; the first: of conv1
    std::vector<int64_t> blocks = {3, 4, 6, 3};
    int64_t squeeze = 8;      // channels a squeezed one
    int64_t attention = 128;  // hidden width of the pooling
    int64_t pooled = 2048;    // last width times an eighth of the mels
  };
  struct BatchNorm {
    at::Tensor weight, bias, mean, variance;
  };
  struct Block {
    at::Tensor conv1, conv2;  // [out, in, 3, 3], no bias
    BatchNorm bn1, bn2;
    at::Tensor squeeze_weight, squeeze_bias, excite_weight, excite_bias;  // se.fc.0, se.fc.2
    at::Tensor downsample;  // [out, in, 1, 1] or undefined
    BatchNorm downsample_bn;
    int64_t stride = 1;
  };
  Size size;
  at::Tensor conv1_weight, conv1_bias;
  BatchNorm bn1;
  std::vector<std::vector<Block>> stages;
  at::Tensor attention0_weight, attention0_bias;  // [128, 2048, 1]
  BatchNorm attention_bn;                         // attention.2
  at::Tensor attention3_weight, attention3_bias;
  at::Tensor fc_weight, fc_bias;  // [512, 4096]

  // Sizes come from the shapes. Names after `prefix` (`hifigan_decoder.speaker_encoder.`). The mel
  // tables in the file
  // (`torch_spec.…`) are not needed: they equal mel_speaker_encoder().
  static SpeakerEncoder load(Weights& weights, const std::string& prefix);
  static SpeakerEncoder make(const XttsConfig& config, uint64_t seed);
  void visit(const std::string& prefix, const VisitParameter& visit);
  void list(const std::string& prefix, const ListTensor& tensor);  // of this `size`
  static Size size_of(const XttsConfig& config);

  // Mels of mel_speaker_encoder(), standardised. [B, 64, frames] -> [B, 512], of length 1.
  at::Tensor operator()(const at::Tensor& mels) const;
};

}  // namespace tandem
