#include "nn/layers.h"

#include <cmath>

namespace tandem {

Linear Linear::make(uint64_t seed, const std::string& name, int64_t in, int64_t out,
                    double deviation) {
  return {make_parameter(seed, name + ".weight", {out, in}, deviation),
          make_parameter(seed, name + ".bias", {out}, 0.0)};
}

at::Tensor Linear::operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }

void Linear::visit(const std::string& name, const VisitParameter& visit) {
  visit(name + ".weight", weight);
  visit(name + ".bias", bias);
}

LayerNorm LayerNorm::make(uint64_t seed, const std::string& name, int64_t width) {
  return {make_parameter(seed, name + ".weight", {width}, 0.0, 1.0),
          make_parameter(seed, name + ".bias", {width}, 0.0)};
}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return at::layer_norm(x, {weight.size(0)}, weight, bias, 1e-5);
}

void LayerNorm::visit(const std::string& name, const VisitParameter& visit) {
  visit(name + ".weight", weight);
  visit(name + ".bias", bias);
}

GptBlock GptBlock::make(uint64_t seed, const std::string& name, int64_t width, int64_t heads,
                        int64_t layers) {
  // GPT-2: projections into the residual stream start smaller the deeper the network is.
  const double deviation = 0.02,
               into_residual = deviation / std::sqrt(2.0 * static_cast<double>(layers));
  GptBlock block;
  block.norm_attention = LayerNorm::make(seed, name + ".norm_attention", width);
  block.norm_mlp = LayerNorm::make(seed, name + ".norm_mlp", width);
  block.qkv = Linear::make(seed, name + ".qkv", width, 3 * width, deviation);
  block.project = Linear::make(seed, name + ".project", width, width, into_residual);
  block.expand = Linear::make(seed, name + ".expand", width, 4 * width, deviation);
  block.contract = Linear::make(seed, name + ".contract", 4 * width, width, into_residual);
  block.heads = heads;
  return block;
}

at::Tensor GptBlock::operator()(const at::Tensor& x) const {
  const int64_t batch = x.size(0), places = x.size(1), width = x.size(2);
  const auto split_heads = [&](const at::Tensor& part) {
    return part.view({batch, places, heads, width / heads}).transpose(1, 2);
  };
  const auto parts = qkv(norm_attention(x)).split(width, -1);
  const at::Tensor attended =
      at::scaled_dot_product_attention(split_heads(parts[0]), split_heads(parts[1]),
                                       split_heads(parts[2]), {}, 0.0, /*is_causal=*/true);
  const at::Tensor y = x + project(attended.transpose(1, 2).reshape({batch, places, width}));
  return y + contract(at::gelu(expand(norm_mlp(y)), "tanh"));
}

void GptBlock::visit(const std::string& name, const VisitParameter& visit) {
  norm_attention.visit(name + ".norm_attention", visit);
  norm_mlp.visit(name + ".norm_mlp", visit);
  qkv.visit(name + ".qkv", visit);
  project.visit(name + ".project", visit);
  expand.visit(name + ".expand", visit);
  contract.visit(name + ".contract", visit);
}

}  // namespace tandem
