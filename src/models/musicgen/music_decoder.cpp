#include "models/musicgen/music_decoder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "models/musicgen/music_parameters.h"

namespace tandem {
namespace {

constexpr TensorStart small = {.deviation = 0.02};  // transformers' initializer_factor

void list_norm(const std::string& name, LayerNorm& norm, int64_t width, const ListTensor& list) {
  list(name + ".weight", norm.weight, {width}, {.mean = 1});
  list(name + ".bias", norm.bias, {width}, {});
}

void list_attention(const std::string& name, MusicDecoder::Attention& attention, int64_t width,
                    const ListTensor& list) {
  list(name + ".q_proj.weight", attention.query, {width, width}, small);
  list(name + ".k_proj.weight", attention.key, {width, width}, small);
  list(name + ".v_proj.weight", attention.value, {width, width}, small);
  list(name + ".out_proj.weight", attention.output, {width, width}, small);
}

}  // namespace

void MusicDecoder::list(const std::string& prefix, const ListTensor& list, int64_t text_width) {
  const int64_t width = size.width;
  const std::string inner = prefix + "decoder.model.decoder.";
  embeddings.resize(static_cast<size_t>(size.codebooks));
  heads.resize(embeddings.size());
  blocks.resize(static_cast<size_t>(size.layers));
  for (size_t k = 0; k < embeddings.size(); ++k) {
    list(fmt::format("{}embed_tokens.{}.weight", inner, k), embeddings[k],
         {size.vocabulary + 1, width}, small);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string name = fmt::format("{}layers.{}.", inner, i);
    Block& block = blocks[i];
    list_norm(name + "self_attn_layer_norm", block.norm_self, width, list);
    list_attention(name + "self_attn", block.self, width, list);
    list_norm(name + "encoder_attn_layer_norm", block.norm_cross, width, list);
    list_attention(name + "encoder_attn", block.cross, width, list);
    list_norm(name + "final_layer_norm", block.norm_inner, width, list);
    list(name + "fc1.weight", block.expand, {size.inner, width}, small);
    list(name + "fc2.weight", block.contract, {width, size.inner}, small);
  }
  list_norm(inner + "layer_norm", last_norm, width, list);
  for (size_t k = 0; k < heads.size(); ++k) {
    list(fmt::format("{}decoder.lm_heads.{}.weight", prefix, k), heads[k], {size.vocabulary, width},
         small);
  }
  if (text_width == width) return;
  list(prefix + "enc_to_dec_proj.weight", text_projection.weight, {width, text_width}, small);
  list(prefix + "enc_to_dec_proj.bias", text_projection.bias, {width}, {});
}

MusicDecoder MusicDecoder::load(Weights& weights, const std::string& prefix,
                                const MusicDecoderSize& size, int64_t text_width) {
  MusicDecoder decoder;
  decoder.size = size;
  decoder.list(prefix, load_as_configured(weights), text_width);
  return decoder;
}

MusicDecoder MusicDecoder::make(const MusicDecoderSize& size, int64_t text_width, uint64_t seed) {
  MusicDecoder decoder;
  decoder.size = size;
  decoder.list("", draw_repeating(seed), text_width);
  return decoder;
}

void MusicDecoder::visit(const std::string& prefix, const VisitParameter& visit) {
  const bool projects = text_projection.weight.defined();
  list(prefix, pass_to(visit), projects ? text_projection.weight.size(1) : size.width);
}

at::Tensor MusicDecoder::sinusoids(int64_t positions, int64_t width) {
  // In float32 step by step, as transformers computes them.
  const int64_t half = width / 2;
  const double step = std::log(10000.0) / static_cast<double>(half - 1);
  const at::Tensor frequencies = at::exp(at::arange(half, at::kLong).to(at::kFloat) * -step);
  const at::Tensor angles =
      at::arange(positions, at::kLong).to(at::kFloat).unsqueeze(1) * frequencies.unsqueeze(0);
  at::Tensor table = at::cat({at::cos(angles), at::sin(angles)}, 1);
  if (width % 2 == 1) table = at::cat({table, at::zeros({positions, 1})}, 1);
  return table;
}

}  // namespace tandem
