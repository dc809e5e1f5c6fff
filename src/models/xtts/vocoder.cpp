#include "models/xtts/vocoder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/channels_last.h"
#include "nn/leaky_cast.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double slope = 0.1;
constexpr double last_slope = 0.01;  // PyTorch's default, which the reference uses at the end

// What the product of a layer reads behind a leaky ReLU.
at::Tensor activate(const Vocoder::Convolution& layer, const at::Tensor& x, double by = slope) {
  return leaky_cast(x, by, layer.weight.scalar_type());
}

// Products in the type of the weights; what they are added to keeps its own.
at::Tensor convolve(const Vocoder::Convolution& layer, const at::Tensor& x, int64_t dilation = 1) {
  const int64_t padding = (layer.weight.size(2) - 1) / 2 * dilation;
  const at::Tensor in = x.to(layer.weight.scalar_type());
  return conv_rows(in, layer.weight, layer.bias, {.padding = padding, .dilation = dilation});
}

at::Tensor widen(const Vocoder::Stage& stage, const at::Tensor& x) {
  const int64_t padding = (stage.up.weight.size(2) - stage.rate) / 2;
  const at::Tensor in = x.to(stage.up.weight.scalar_type());
  return conv_rows_transposed(in, stage.up.weight, stage.up.bias,
                              {.stride = stage.rate, .padding = padding});
}

at::Tensor residual(const Vocoder::ResidualBlock& block, const at::Tensor& x,
                    const std::vector<int64_t>& dilations) {
  at::Tensor y = x;
  for (size_t i = 0; i < block.first.size(); ++i) {
    const Vocoder::Convolution &first = block.first[i], &second = block.second[i];
    const at::Tensor inner = convolve(first, activate(first, y), dilations[i]);
    y = y + convolve(second, activate(second, inner));
  }
  return y;
}

}  // namespace

at::Tensor Vocoder::sound(const at::Tensor& frames, const at::Tensor& speaker_embedding) const {
  const at::ScalarType type = at::promote_types(frames.scalar_type(), pre.weight.scalar_type());
  const at::Tensor g = speaker_embedding.to(pre.weight.options()).unsqueeze(-1);  // [B, 512, 1]
  const auto told = [&](const Convolution& layer) { return convolve(layer, g).to(type); };
  const at::Tensor in = channels_last(frames.to(pre.weight.options()));
  at::Tensor x = convolve(pre, in).to(type) + told(speaker);
  for (const Stage& stage : stages) {
    x = widen(stage, activate(stage.up, x)).to(type) + told(stage.speaker);
    at::Tensor sum;
    for (const ResidualBlock& block : stage.residual) {
      const at::Tensor part = residual(block, x, dilations);
      sum = sum.defined() ? sum + part : part;
    }
    x = sum / static_cast<double>(stage.residual.size());
  }
  return convolve(post, activate(post, x, last_slope)).to(type).tanh().squeeze(1);
}

at::Tensor Vocoder::operator()(const at::Tensor& latents,
                               const at::Tensor& speaker_embedding) const {
  return sound(frames(latents, 0, frames_of(latents.size(1))), speaker_embedding);
}

int64_t Vocoder::samples_a_frame() const {
  int64_t product = 1;
  for (const Stage& stage : stages) product *= stage.rate;
  return product;
}

int64_t Vocoder::context_frames() const {
  // The samples of frame 0, followed back to the frames they are made from.
  int64_t low = 0, high = samples_a_frame() - 1;
  const auto widen_by = [&](int64_t reach) { low -= reach, high += reach; };
  widen_by((size.post_kernel - 1) / 2);
  for (size_t i = stages.size(); i-- > 0;) {
    int64_t reach = 0;
    for (const int64_t kernel : size.residual_kernels) {
      int64_t sum = 0;
      for (const int64_t dilation : dilations) sum += (kernel - 1) / 2 * (dilation + 1);
      reach = std::max(reach, sum);
    }
    widen_by(reach);
    // Input i gives outputs i * rate - padding + [0, kernel).
    const int64_t rate = stages[i].rate, kernel = size.up_kernels[i], padding = (kernel - rate) / 2;
    const auto floor_divide = [rate](int64_t x) {
      return (x - (((x % rate) + rate) % rate)) / rate;
    };
    low = -floor_divide(-(low + padding - kernel + 1));
    high = floor_divide(high + padding);
  }
  widen_by((size.pre_kernel - 1) / 2);
  return std::max(-low, high);
}

Vocoder::Size Vocoder::size_of(const XttsConfig& config) {
  Size size;
  size.latents = config.gpt.width;
  size.speaker = config.speaker_embedding;
  size.width = config.vocoder_width;
  for (size_t i = 0; i < size.widths.size(); ++i) size.widths[i] = config.vocoder_width >> (i + 1);
  return size;
}

void Vocoder::list(const std::string& prefix, const ListTensor& tensor) {
  const auto convolution = [&](const std::string& name, Convolution& layer, int64_t in, int64_t out,
                               int64_t kernel) {
    tensor(prefix + name + ".weight", layer.weight, {out, in, kernel}, start_for(in * kernel));
    tensor(prefix + name + ".bias", layer.bias, {out}, {});
  };
  convolution("conv_pre", pre, size.latents, size.width, size.pre_kernel);
  convolution("cond_layer", speaker, size.speaker, size.width, 1);
  stages.resize(size.widths.size());
  const size_t kinds = size.residual_kernels.size();
  int64_t width = size.width;
  for (size_t i = 0; i < stages.size(); ++i) {
    Stage& stage = stages[i];
    const int64_t out = size.widths[i], kernel = size.up_kernels[i];
    stage.rate = kernel / 2;
    tensor(fmt::format("{}ups.{}.weight", prefix, i), stage.up.weight, {width, out, kernel},
           start_for(width * 2));  // two inputs reach each output sample
    tensor(fmt::format("{}ups.{}.bias", prefix, i), stage.up.bias, {out}, {});
    convolution(fmt::format("conds.{}", i), stage.speaker, size.speaker, out, 1);
    stage.residual.resize(kinds);
    for (size_t kind = 0; kind < kinds; ++kind) {
      ResidualBlock& block = stage.residual[kind];
      block.first.resize(dilations.size());
      block.second.resize(dilations.size());
      const std::string name = fmt::format("resblocks.{}.convs", i * kinds + kind);
      for (size_t j = 0; j < dilations.size(); ++j) {
        const int64_t k = size.residual_kernels[kind];
        convolution(fmt::format("{}1.{}", name, j), block.first[j], out, out, k);
        convolution(fmt::format("{}2.{}", name, j), block.second[j], out, out, k);
      }
    }
    width = out;
  }
  tensor(prefix + "conv_post.weight", post.weight, {1, width, size.post_kernel},
         start_for(width * size.post_kernel));
}

Vocoder Vocoder::make(const XttsConfig& config, uint64_t seed) {
  Vocoder vocoder;
  vocoder.size = size_of(config);
  vocoder.list("hifigan_decoder.waveform_decoder.", draw_from(seed));
  vocoder.frame_rate_ratio = static_cast<double>(config.output_rate) / config.input_rate;
  vocoder.frames_a_code = std::max<int64_t>(1, config.code_stride / vocoder.samples_a_frame());
  return vocoder;
}

void Vocoder::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
}

}  // namespace tandem
