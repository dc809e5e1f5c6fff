#include "nn/gpt_step/conditioning_reader.h"

#include <ATen/ATen.h>

#include <cmath>

namespace tandem {
namespace {

// Lines of matrices begin at multiples of 16 bytes only where their length is one of 8.
int64_t filled_up(int64_t hidden) { return (hidden + 7) / 8 * 8; }

// The last dimension, or that before it, filled up with zeros.
at::Tensor padded(const at::Tensor& x, int64_t dimension, int64_t size) {
  if (x.size(dimension) == size) return x;
  std::vector<int64_t> shape = x.sizes().vec();
  shape[static_cast<size_t>(dimension)] = size;
  at::Tensor out = at::zeros(shape, x.options());
  out.narrow(dimension, 0, x.size(dimension)).copy_(x);
  return out;
}

void put(const at::Tensor& value, const at::Tensor& gradient, bool overwrites) {
  overwrites ? gradient.copy_(value) : gradient.add_(value);
}

}  // namespace

ConditioningReader::ConditioningReader(const ConditioningStepWeights& weights, StepOps& ops)
    : weights_(weights), ops_(ops) {}

at::Tensor ConditioningReader::heads_of(const at::Tensor& x) const {
  return x.view({x.size(0), -1, weights_.head_width});
}
at::Tensor ConditioningReader::rounded(const at::Tensor& x) const {
  return x.to(weights_.gamma.weight.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}
// Of [B (N + T), D] the places of the latents: [B, N, D].
at::Tensor ConditioningReader::latents_in(const at::Tensor& sources) const {
  const int64_t latents = weights_.latents.weight.size(0);
  return sources.view({frames_.rows, latents + frames_.places, -1}).narrow(1, 0, latents);
}

at::Tensor ConditioningReader::forward(const at::Tensor& x, const StepFrames& frames) {
  frames_ = frames;
  memory_.clear();
  const int64_t latents = weights_.latents.weight.size(0), width = x.size(1), rows = frames.rows;
  sources_ = at::empty({rows * (latents + frames.places), width}, x.options());
  sources_.view({rows, -1, width})
      .narrow(1, latents, frames.places)
      .copy_(x.view({rows, frames.places, width}));
  stream_ = weights_.latents.weight.to(at::kFloat).repeat({rows, 1});
  for (const ConditioningStepLayer& layer : weights_.layers) {
    LayerMemory& kept = memory_.emplace_back();
    read_forward(layer, kept);
    feed_forward(layer, kept);
  }
  const at::Tensor length = at::linalg_vector_norm(stream_, 2, -1, true).clamp_min(1e-12);
  const double root = std::sqrt(static_cast<double>(width));
  return (stream_ / length * root * weights_.gamma.weight).view({rows, latents, width});
}

void ConditioningReader::read_forward(const ConditioningStepLayer& layer, LayerMemory& kept) {
  const int64_t inner = layer.to_q.weight.size(0);
  kept.before = rounded(stream_);
  latents_in(sources_).copy_(kept.before.view({frames_.rows, -1, kept.before.size(1)}));
  kept.queries = at::empty({kept.before.size(0), inner}, kept.before.options());
  kept.both = at::empty({sources_.size(0), 2 * inner}, kept.before.options());
  ops_.multiply(
      {.left = kept.before, .right = layer.to_q.weight, .out = kept.queries, .right_turned = true});
  ops_.multiply(
      {.left = sources_, .right = layer.to_kv.weight, .out = kept.both, .right_turned = true});
  kept.read = ops_.read(heads_of(kept.queries), heads_of(kept.both.narrow(1, 0, inner)),
                        heads_of(kept.both.narrow(1, inner, inner)), frames_);
  ops_.multiply({.left = kept.read.out.view({-1, inner}),
                 .right = layer.to_out.weight,
                 .out = stream_,
                 .right_turned = true,
                 .adds = true});
}

void ConditioningReader::feed_forward(const ConditioningStepLayer& layer, LayerMemory& kept) {
  const int64_t hidden = layer.contract_weight.weight.size(1), filled = filled_up(hidden);
  const int64_t width = stream_.size(1);
  kept.expand = padded(layer.expand_weight.weight.view({2, hidden, width}), 1, filled)
                    .view({2 * filled, width});
  kept.contract = padded(layer.contract_weight.weight, 1, filled);
  kept.between = rounded(stream_);
  kept.hidden = at::empty({stream_.size(0), 2 * filled}, kept.between.options());
  ops_.multiply({.left = kept.between,
                 .right = kept.expand,
                 .out = kept.hidden,
                 .right_turned = true,
                 .bias = padded(layer.expand_bias.weight.view({2, hidden}), 1, filled).flatten()});
  kept.gated = kept.hidden.narrow(1, 0, filled) * at::gelu(kept.hidden.narrow(1, filled, filled));
  ops_.multiply({.left = kept.gated,
                 .right = kept.contract,
                 .out = stream_,
                 .right_turned = true,
                 .adds = true});
  stream_.add_(layer.contract_bias.weight);
}

at::Tensor ConditioningReader::backward(const at::Tensor& gradient, bool overwrites) {
  const int64_t latents = weights_.latents.weight.size(0), width = stream_.size(1);
  const int64_t rows = frames_.rows;
  // y = x / |x| r g: dx = r / |x| (d g - x <x, d g> / |x|^2).
  const at::Tensor length = at::linalg_vector_norm(stream_, 2, -1, true).clamp_min(1e-12);
  const double root = std::sqrt(static_cast<double>(width));
  const at::Tensor unit = stream_ / length, given = gradient.view({-1, width});
  put((given * unit).sum(0) * root, weights_.gamma.gradient, overwrites);
  const at::Tensor scaled = given * weights_.gamma.weight * root;
  stream_ = (scaled - unit * (unit * scaled).sum(-1, true)) / length;

  flow_ = at::empty_like(sources_);
  for (size_t i = memory_.size(); i-- > 0;) {
    const bool last = i + 1 == weights_.layers.size();
    feed_backward(weights_.layers[i], memory_[i], overwrites);
    read_backward(weights_.layers[i], memory_[i], last, overwrites);
    memory_.pop_back();
  }
  put(stream_.view({rows, latents, width}).sum(0), weights_.latents.gradient, overwrites);
  const at::Tensor out = flow_.view({rows, -1, width})
                             .narrow(1, latents, frames_.places)
                             .contiguous()
                             .view({-1, width});
  stream_.reset();
  sources_.reset();
  flow_.reset();
  return out;
}

void ConditioningReader::feed_backward(const ConditioningStepLayer& layer, const LayerMemory& kept,
                                       bool overwrites) {
  const int64_t hidden = layer.contract_weight.weight.size(1), filled = kept.contract.size(1);
  const int64_t width = stream_.size(1);
  const at::TensorOptions number = stream_.options();
  put(stream_.sum(0), layer.contract_bias.gradient, overwrites);
  const at::Tensor flow = rounded(stream_);
  at::Tensor gated = at::empty_like(kept.gated);
  ops_.multiply({.left = flow, .right = kept.contract, .out = gated});
  at::Tensor to_contract = at::empty({width, filled}, number);
  ops_.multiply({.left = flow, .right = kept.gated, .out = to_contract, .left_turned = true});
  put(to_contract.narrow(1, 0, hidden), layer.contract_weight.gradient, overwrites);

  const at::Tensor gate = kept.hidden.narrow(1, filled, filled);
  at::Tensor wide = at::empty_like(kept.hidden);
  wide.narrow(1, 0, filled).copy_(gated * at::gelu(gate));
  wide.narrow(1, filled, filled)
      .copy_(at::gelu_backward(gated * kept.hidden.narrow(1, 0, filled), gate));
  at::Tensor to_expand = at::empty({2 * filled, width}, number);
  ops_.multiply({.left = wide, .right = kept.between, .out = to_expand, .left_turned = true});
  put(to_expand.view({2, filled, width}).narrow(1, 0, hidden),
      layer.expand_weight.gradient.view({2, hidden, width}), overwrites);
  at::Tensor to_bias = at::empty({2 * filled}, number);
  ops_.sum_rows(wide, to_bias, true);
  put(to_bias.view({2, filled}).narrow(1, 0, hidden), layer.expand_bias.gradient.view({2, hidden}),
      overwrites);
  ops_.multiply({.left = wide, .right = kept.expand, .out = stream_, .adds = true});
}

void ConditioningReader::read_backward(const ConditioningStepLayer& layer, const LayerMemory& kept,
                                       bool last, bool overwrites) {
  const bool adds = !overwrites;
  const int64_t inner = layer.to_q.weight.size(0), width = stream_.size(1);
  const at::Tensor flow = rounded(stream_);
  at::Tensor attended = at::empty_like(kept.queries);
  ops_.multiply({.left = flow, .right = layer.to_out.weight, .out = attended});
  ops_.multiply({.left = flow,
                 .right = kept.read.out.view({-1, inner}),
                 .out = layer.to_out.gradient,
                 .left_turned = true,
                 .adds = adds});
  const auto parts = ops_.read_backward(heads_of(attended), heads_of(kept.queries),
                                        heads_of(kept.both.narrow(1, 0, inner)),
                                        heads_of(kept.both.narrow(1, inner, inner)), kept.read);
  const at::Tensor queries = parts[0].reshape({-1, inner});
  const at::Tensor both = at::cat({parts[1].flatten(1), parts[2].flatten(1)}, 1);
  ops_.multiply({.left = queries,
                 .right = kept.before,
                 .out = layer.to_q.gradient,
                 .left_turned = true,
                 .adds = adds});
  // The latents as this layer saw them; a later layer wrote its own.
  latents_in(sources_).copy_(kept.before.view({frames_.rows, -1, width}));
  ops_.multiply({.left = both,
                 .right = sources_,
                 .out = layer.to_kv.gradient,
                 .left_turned = true,
                 .adds = adds});
  ops_.multiply({.left = queries, .right = layer.to_q.weight, .out = stream_, .adds = true});
  // Frames get gradients from all layers, latents from their own.
  if (!last) latents_in(flow_).zero_();
  ops_.multiply({.left = both, .right = layer.to_kv.weight, .out = flow_, .adds = !last});
  stream_.view({frames_.rows, -1, width}).add_(latents_in(flow_));
}

}  // namespace tandem
