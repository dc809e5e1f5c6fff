#include "models/xtts/speaker_encoder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace tandem {
namespace {

at::Tensor normalise(const SpeakerEncoder::BatchNorm& norm, const at::Tensor& x) {
  return at::batch_norm(x, norm.weight, norm.bias, norm.mean, norm.variance, /*training=*/false,
                        0.1, 1e-5, /*cudnn_enabled=*/false);
}

// Convolution, ReLU, norm, convolution, norm, squeeze and excitation, sum, ReLU.
at::Tensor pass(const SpeakerEncoder::Block& block, const at::Tensor& x) {
  at::Tensor y = at::conv2d(x, block.conv1, {}, block.stride, 1).relu();
  y = at::conv2d(normalise(block.bn1, y), block.conv2, {}, 1, 1);
  y = normalise(block.bn2, y);
  const at::Tensor mean = y.mean({2, 3});  // [B, C]
  const at::Tensor inner = at::linear(mean, block.squeeze_weight, block.squeeze_bias).relu();
  const at::Tensor gate = at::linear(inner, block.excite_weight, block.excite_bias).sigmoid();
  const at::Tensor before =
      block.downsample.defined()
          ? normalise(block.downsample_bn, at::conv2d(x, block.downsample, {}, block.stride))
          : x;
  return (y * gate.unsqueeze(-1).unsqueeze(-1) + before).relu();
}

}  // namespace

at::Tensor SpeakerEncoder::operator()(const at::Tensor& mels) const {
  at::Tensor x = at::conv2d(mels.unsqueeze(1), conv1_weight, conv1_bias, 1, 1).relu();
  x = normalise(bn1, x);
  for (const auto& stage : stages)
    for (const Block& block : stage) x = pass(block, x);
  x = x.flatten(1, 2);  // [B, channels * mels / 8, frames]
  // Attentive statistics: weights over the frames, then mean and deviation.
  at::Tensor w = at::conv1d(x, attention0_weight, attention0_bias).relu();
  w = at::conv1d(normalise(attention_bn, w), attention3_weight, attention3_bias).softmax(2);
  const at::Tensor mean = (x * w).sum(2);
  const at::Tensor deviation = ((x * x * w).sum(2) - mean * mean).clamp_min(1e-5).sqrt();
  const at::Tensor out = at::linear(at::cat({mean, deviation}, 1), fc_weight, fc_bias);
  return out / at::linalg_vector_norm(out, 2, 1, true).clamp_min(1e-12);
}

SpeakerEncoder::Size SpeakerEncoder::size_of(const XttsConfig& config) {
  Size size;
  size.embedding = config.speaker_embedding;
  for (size_t i = 0; i < size.widths.size(); ++i) size.widths[i] = config.speaker_width << i;
  size.pooled = size.widths.back() * (size.mels / 8);
  return size;
}

void SpeakerEncoder::list(const std::string& prefix, const ListTensor& tensor) {
  const auto norm = [&](const std::string& name, BatchNorm& layer, int64_t width) {
    tensor(name + ".weight", layer.weight, {width}, {.mean = 1});
    tensor(name + ".bias", layer.bias, {width}, {});
    tensor(name + ".running_mean", layer.mean, {width}, {.parameter = false});
    tensor(name + ".running_var", layer.variance, {width}, {.mean = 1, .parameter = false});
  };
  const auto linear = [&](const std::string& name, at::Tensor& weight, at::Tensor& bias,
                          const Shape& shape) {
    tensor(name + ".weight", weight, shape, start_for(shape[1]));
    tensor(name + ".bias", bias, {shape[0]}, {});
  };
  int64_t in = size.widths.front();
  tensor(prefix + "conv1.weight", conv1_weight, {in, 1, 3, 3}, start_for(9));
  tensor(prefix + "conv1.bias", conv1_bias, {in}, {});
  norm(prefix + "bn1", bn1, in);
  stages.resize(size.widths.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    const int64_t out = size.widths[i];
    stages[i].resize(static_cast<size_t>(size.blocks[i]));
    for (size_t j = 0; j < stages[i].size(); ++j) {
      Block& block = stages[i][j];
      const std::string name = fmt::format("{}layer{}.{}", prefix, i + 1, j);
      block.stride = i > 0 && j == 0 ? 2 : 1;
      tensor(name + ".conv1.weight", block.conv1, {out, in, 3, 3}, start_for(in * 9));
      norm(name + ".bn1", block.bn1, out);
      tensor(name + ".conv2.weight", block.conv2, {out, out, 3, 3}, start_for(out * 9));
      norm(name + ".bn2", block.bn2, out);
      const int64_t squeezed = out / size.squeeze;
      linear(name + ".se.fc.0", block.squeeze_weight, block.squeeze_bias, {squeezed, out});
      linear(name + ".se.fc.2", block.excite_weight, block.excite_bias, {out, squeezed});
      if (block.stride != 1 || in != out) {
        tensor(name + ".downsample.0.weight", block.downsample, {out, in, 1, 1}, start_for(in));
        norm(name + ".downsample.1", block.downsample_bn, out);
      }
      in = out;
    }
  }
  linear(prefix + "attention.0", attention0_weight, attention0_bias,
         {size.attention, size.pooled, 1});
  norm(prefix + "attention.2", attention_bn, size.attention);
  linear(prefix + "attention.3", attention3_weight, attention3_bias,
         {size.pooled, size.attention, 1});
  linear(prefix + "fc", fc_weight, fc_bias, {size.embedding, 2 * size.pooled});
}

SpeakerEncoder SpeakerEncoder::load(Weights& weights, const std::string& prefix) {
  SpeakerEncoder encoder;
  Size& size = encoder.size;
  const auto shape = [&](const std::string& name, size_t dimensions) {
    const Shape found = weights.shape(prefix + name);
    return found.size() == dimensions ? found : Shape{};
  };
  if (const Shape s = shape("conv1.weight", 4); !s.empty()) size.widths[0] = s[0];
  for (size_t i = 0; i < size.widths.size(); ++i) {
    const std::string name = fmt::format("layer{}", i + 1);
    if (const Shape s = shape(name + ".0.conv1.weight", 4); !s.empty()) size.widths[i] = s[0];
    int64_t blocks = 0;
    while (weights.has(fmt::format("{}{}.{}.conv1.weight", prefix, name, blocks))) ++blocks;
    if (blocks > 0) size.blocks[i] = blocks;
  }
  if (const Shape s = shape("layer1.0.se.fc.0.weight", 2); !s.empty() && s[0] > 0)
    size.squeeze = s[1] / s[0];
  if (const Shape s = shape("attention.0.weight", 3); !s.empty())
    size.attention = s[0], size.pooled = s[1];
  if (const Shape s = shape("fc.weight", 2); !s.empty()) size.embedding = s[0];
  encoder.list(prefix, load_from(weights));
  return encoder;
}

SpeakerEncoder SpeakerEncoder::make(const XttsConfig& config, uint64_t seed) {
  SpeakerEncoder encoder;
  encoder.size = size_of(config);
  encoder.list("hifigan_decoder.speaker_encoder.", draw_from(seed));
  return encoder;
}

void SpeakerEncoder::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
}

}  // namespace tandem
