#include "models/xtts/conditioning.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "nn/frame_norm.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr int64_t perceiver_head = 64;

// Which frames count: undefined where all do.
struct Frames {
  at::Tensor lengths;  // [B] int64, 1 at least
  at::Tensor real;     // [B, T] bool
  std::optional<at::Tensor> keys(int64_t before = 0) const {
    if (!real.defined()) return std::nullopt;
    const at::Tensor all = at::constant_pad_nd(real, {before, 0}, 1);
    return all.view({all.size(0), 1, 1, all.size(1)});
  }
};

at::Tensor group_norm(const at::Tensor& x, const Conditioning::Attention& block,
                      const Frames& frames) {
  const int64_t groups = norm_groups(x.size(2));
  if (frames.lengths.defined())
    return frame_norm(x, frames.lengths, block.norm_weight.to(at::kFloat),
                      block.norm_bias.to(at::kFloat), groups);
  return at::group_norm(x.transpose(1, 2), groups, block.norm_weight, block.norm_bias, 1e-5)
      .transpose(1, 2);
}

// x [B, T, D] -> [B, T, D]. The residual is the normalised x.
at::Tensor attend(const Conditioning::Attention& block, const at::Tensor& x, int64_t heads,
                  const Frames& real) {
  const int64_t batch = x.size(0), frames = x.size(1), width = x.size(2), head = width / heads;
  const at::Tensor normed = group_norm(x, block, real);
  // Channels per head: q, k, v. -> three of [B, heads, T, head]
  const auto qkv = at::linear(normed, block.qkv_weight.squeeze(2), block.qkv_bias)
                       .view({batch, frames, heads, 3, head})
                       .permute({3, 0, 2, 1, 4})
                       .unbind(0);
  const at::Tensor attended = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], real.keys())
                                  .transpose(1, 2)
                                  .reshape({batch, frames, width});
  return normed + at::linear(attended, block.project_weight.squeeze(2), block.project_bias);
}

// Queries from the latents, keys and values from latents and frames. [B, N, D], [B, T, D].
at::Tensor read(const Conditioning::PerceiverLayer& layer, const at::Tensor& latents,
                const at::Tensor& frames, const Frames& real) {
  const auto split_heads = [](const at::Tensor& x) {
    return x.view({x.size(0), x.size(1), -1, perceiver_head}).transpose(1, 2);
  };
  const auto kv = at::linear(at::cat({latents, frames}, 1), layer.to_kv).chunk(2, -1);
  const at::Tensor attended = at::scaled_dot_product_attention(
      split_heads(at::linear(latents, layer.to_q)), split_heads(kv[0]), split_heads(kv[1]),
      real.keys(latents.size(1)));
  return at::linear(attended.transpose(1, 2).flatten(2), layer.to_out);
}

at::Tensor feed_forward(const Conditioning::PerceiverLayer& layer, const at::Tensor& x) {
  const auto halves = at::linear(x, layer.expand_weight, layer.expand_bias).chunk(2, -1);
  return at::linear(halves[0] * at::gelu(halves[1]), layer.contract_weight, layer.contract_bias);
}

}  // namespace

int64_t norm_groups(int64_t width) {
  int64_t groups = width <= 16 ? 8 : width <= 64 ? 16 : 32;
  while (width % groups != 0) groups /= 2;
  return groups;
}

at::Tensor Conditioning::operator()(const at::Tensor& mels, const at::Tensor& lengths) const {
  Frames real;
  if (lengths.defined()) {
    // One frame at least, so that no row attends to nothing.
    real.lengths = lengths.clamp_min(1);
    real.real =
        at::arange(mels.size(2), lengths.options()).unsqueeze(0) < real.lengths.unsqueeze(1);
  }
  at::Tensor x = at::linear(mels.transpose(1, 2), init_weight.squeeze(2), init_bias);
  for (const Attention& block : blocks) x = attend(block, x, size.heads, real);
  at::Tensor y = latents.to(at::kFloat).unsqueeze(0).expand({mels.size(0), -1, -1});
  for (const PerceiverLayer& layer : layers) {
    y = y + read(layer, y, x, real);
    y = y + feed_forward(layer, y);
  }
  const double length = std::sqrt(static_cast<double>(y.size(2)));
  return y / at::linalg_vector_norm(y, 2, -1, true).clamp_min(1e-12) * length * gamma;
}

Conditioning::Size Conditioning::size_of(const XttsConfig& config) {
  Size size;
  size.width = config.gpt.width;
  size.mels = config.mel_channels;
  size.heads = config.gpt.heads;
  size.hidden = config.gpt.width * 8 / 3;
  return size;
}

void Conditioning::list(const std::string& prefix, const ListTensor& tensor) {
  const int64_t width = size.width;
  const auto layer = [&](const std::string& name, at::Tensor& weight, at::Tensor& bias,
                         const Shape& shape) {
    tensor(name + ".weight", weight, shape, start_for(shape[1]));
    tensor(name + ".bias", bias, {shape[0]}, {});
  };
  const std::string encoder = prefix + "conditioning_encoder.";
  layer(encoder + "init", init_weight, init_bias, {width, size.mels, 1});
  blocks.resize(static_cast<size_t>(size.blocks));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string name = fmt::format("{}attn.{}", encoder, i);
    tensor(name + ".norm.weight", blocks[i].norm_weight, {width}, {.mean = 1});
    tensor(name + ".norm.bias", blocks[i].norm_bias, {width}, {});
    layer(name + ".qkv", blocks[i].qkv_weight, blocks[i].qkv_bias, {3 * width, width, 1});
    layer(name + ".proj_out", blocks[i].project_weight, blocks[i].project_bias, {width, width, 1});
  }
  const std::string perceiver = prefix + "conditioning_perceiver.";
  tensor(perceiver + "latents", latents, {size.latents, width}, {.deviation = 0.02});
  layers.resize(static_cast<size_t>(size.layers));
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = fmt::format("{}layers.{}", perceiver, i);
    tensor(name + ".0.to_q.weight", layers[i].to_q, {size.inner, width}, start_for(width));
    tensor(name + ".0.to_kv.weight", layers[i].to_kv, {2 * size.inner, width}, start_for(width));
    tensor(name + ".0.to_out.weight", layers[i].to_out, {width, size.inner}, start_for(size.inner));
    layer(name + ".1.0", layers[i].expand_weight, layers[i].expand_bias, {2 * size.hidden, width});
    layer(name + ".1.2", layers[i].contract_weight, layers[i].contract_bias, {width, size.hidden});
  }
  tensor(perceiver + "norm.gamma", gamma, {width}, {.mean = 1});
}

Conditioning Conditioning::load(Weights& weights, const std::string& prefix, int64_t heads) {
  Conditioning made;
  Size& size = made.size;
  const auto shape = [&](const std::string& name, size_t dimensions) {
    const Shape found = weights.shape(prefix + name);
    return found.size() == dimensions ? found : Shape{};
  };
  size.width = heads;
  if (const Shape s = shape("conditioning_encoder.init.weight", 3); !s.empty())
    size.width = s[0], size.mels = s[1];
  if (const Shape s = shape("conditioning_perceiver.latents", 2); !s.empty()) size.latents = s[0];
  if (const Shape s = shape("conditioning_perceiver.layers.0.0.to_q.weight", 2); !s.empty())
    size.inner = s[0];
  if (const Shape s = shape("conditioning_perceiver.layers.0.1.2.weight", 2); !s.empty())
    size.hidden = s[1];
  const auto count = [&](const char* pattern) {
    int64_t number = 0;
    while (weights.has(prefix + fmt::format(fmt::runtime(pattern), number))) ++number;
    return std::max<int64_t>(1, number);
  };
  size.blocks = count("conditioning_encoder.attn.{}.norm.weight");
  size.layers = count("conditioning_perceiver.layers.{}.0.to_q.weight");
  size.heads = heads;
  if (heads < 1 || size.width % heads != 0 || size.inner % perceiver_head != 0) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}`: a conditioning encoder of width {} cannot have {} heads and a "
                            "perceiver of width {}; expected a divisor and a multiple of 64",
                            weights.source(), size.width, heads, size.inner));
  }
  made.list(prefix, load_from(weights));
  return made;
}

Conditioning Conditioning::make(const XttsConfig& config, uint64_t seed) {
  Conditioning made;
  made.size = size_of(config);
  made.list("gpt.", draw_from(seed));
  return made;
}

void Conditioning::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
}

}  // namespace tandem
