#include "models/musicgen/t5_encoder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "models/musicgen/music_parameters.h"
#include "tandem/error.h"

namespace tandem {
namespace {

at::Tensor root_mean_square_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return weight * (x * at::rsqrt(x.pow(2).mean({-1}, /*keepdim=*/true) + eps));
}

at::Tensor activated(const at::Tensor& x, const std::string& activation) {
  if (activation == "relu") return at::relu(x);
  if (activation == "gelu") return at::gelu(x);
  if (activation == "gelu_new") return at::gelu(x, "tanh");
  if (activation == "silu") return at::silu(x);
  throw Error(ErrorKind::internal, fmt::format("T5 has no activation `{}`", activation));
}

// [query, key] -> the bucket of key - query. Half of the buckets are for keys behind the query, in
// each half the first half for one distance each, the rest spaced by logarithm.
at::Tensor position_buckets(int64_t places, const T5Size& size, at::Device device) {
  const at::Tensor place = at::arange(places, at::TensorOptions(at::kLong).device(device));
  const at::Tensor distance = place.unsqueeze(0) - place.unsqueeze(1);
  const int64_t side = size.buckets / 2, exact = side / 2;
  const at::Tensor reach = distance.abs();
  const double whole =
      std::log(static_cast<double>(size.max_distance) / static_cast<double>(exact));
  const at::Tensor far =
      exact + (at::log(reach.to(at::kFloat) / exact) / whole * (side - exact)).to(at::kLong);
  return (distance > 0).to(at::kLong) * side +
         at::where(reach < exact, reach, at::clamp_max(far, side - 1));
}

}  // namespace

void T5Encoder::list(const std::string& prefix, const ListTensor& list) {
  // As T5 starts: attention is not scaled, so the queries start smaller.
  const auto spread = [](int64_t inputs) {
    return TensorStart{.deviation = 1 / std::sqrt(static_cast<double>(inputs))};
  };
  const int64_t width = size.width, attended = size.heads * size.head_width;
  list(prefix + "shared.weight", embedding, {size.vocabulary, width}, {.deviation = 1});
  blocks.resize(static_cast<size_t>(size.layers));
  for (size_t i = 0; i < blocks.size(); ++i) {
    Block& block = blocks[i];
    const std::string name = fmt::format("{}encoder.block.{}.layer.", prefix, i);
    const std::string attention = name + "0.SelfAttention.", inner = name + "1.DenseReluDense.";
    list(attention + "q.weight", block.query, {attended, width}, spread(width * size.head_width));
    list(attention + "k.weight", block.key, {attended, width}, spread(width));
    list(attention + "v.weight", block.value, {attended, width}, spread(width));
    list(attention + "o.weight", block.output, {width, attended}, spread(attended));
    if (i == 0) {
      list(attention + "relative_attention_bias.weight", position_bias, {size.buckets, size.heads},
           spread(width));
    }
    list(name + "0.layer_norm.weight", block.norm_attention, {width}, {.mean = 1});
    list(inner + (size.gated ? "wi_0.weight" : "wi.weight"), block.expand, {size.inner, width},
         spread(width));
    if (size.gated)
      list(inner + "wi_1.weight", block.expand_gate, {size.inner, width}, spread(width));
    list(inner + "wo.weight", block.contract, {width, size.inner}, spread(size.inner));
    list(name + "1.layer_norm.weight", block.norm_inner, {width}, {.mean = 1});
  }
  list(prefix + "encoder.final_layer_norm.weight", last_norm, {width}, {.mean = 1});
}

T5Encoder T5Encoder::load(Weights& weights, const std::string& prefix, const T5Size& size) {
  T5Encoder encoder;
  encoder.size = size;
  const ListTensor plain = load_as_configured(weights);
  const std::string shared = prefix + "shared.weight";
  // The embedding is one tensor with two names; files hold either or both.
  const std::string other = prefix + "encoder.embed_tokens.weight";
  encoder.list(prefix, [&](const std::string& name, at::Tensor& tensor, const Shape& shape,
                           const TensorStart& start) {
    const bool renamed = name == shared && !weights.has(shared) && weights.has(other);
    plain(renamed ? other : name, tensor, shape, start);
  });
  return encoder;
}

T5Encoder T5Encoder::make(const T5Size& size, uint64_t seed) {
  T5Encoder encoder;
  encoder.size = size;
  encoder.list("text_encoder.", draw_repeating(seed));
  return encoder;
}

void T5Encoder::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
}

at::Tensor T5Encoder::operator()(const at::Tensor& ids, const at::Tensor& mask) const {
  const at::NoGradGuard no_grad;
  const int64_t batch = ids.size(0), places = ids.size(1);
  const auto split_heads = [&](const at::Tensor& x) {
    return x.view({batch, places, size.heads, size.head_width}).transpose(1, 2);
  };
  const at::Tensor where = position_buckets(places, size, embedding.device());
  // A caption of padding alone attends evenly instead of to NaN: the least number, not -inf.
  const at::Tensor hidden = (1 - mask.to(embedding.device(), at::kFloat)) *
                            static_cast<double>(std::numeric_limits<float>::lowest());
  const at::Tensor bias = at::embedding(position_bias, where).permute({2, 0, 1}).unsqueeze(0) +
                          hidden.view({batch, 1, 1, places});
  at::Tensor x = at::embedding(embedding, ids.to(embedding.device()));
  for (const Block& block : blocks) {
    const at::Tensor seen = root_mean_square_norm(x, block.norm_attention, size.norm_eps);
    const at::Tensor scores = at::matmul(split_heads(at::linear(seen, block.query)),
                                         split_heads(at::linear(seen, block.key)).transpose(2, 3));
    const at::Tensor attended =
        at::matmul(at::softmax(scores + bias, -1), split_heads(at::linear(seen, block.value)));
    x = x + at::linear(attended.transpose(1, 2).reshape({batch, places, -1}), block.output);
    const at::Tensor before = root_mean_square_norm(x, block.norm_inner, size.norm_eps);
    at::Tensor inner = activated(at::linear(before, block.expand), size.activation);
    if (size.gated) inner = inner * at::linear(before, block.expand_gate);
    x = x + at::linear(inner, block.contract);
  }
  return root_mean_square_norm(x, last_norm, size.norm_eps);
}

}  // namespace tandem
