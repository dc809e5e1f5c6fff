#include "nn/gpt_step/conditioning_step.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "nn/gpt_step/conditioning_reader.h"
#include "nn/gpt_step/step_ops.h"
#include "tandem/error.h"

namespace tandem {
namespace {

// [out, in] of a 1x1 convolution's or a product's weight.
at::Tensor matrix(const at::Tensor& weight) { return weight.view({weight.size(0), -1}); }

// What a block leaves for its backward pass.
struct BlockMemory {
  at::Tensor x, normed, statistics, qkv, attended;
  StepOps::Attended attention;
};

}  // namespace

struct ConditioningStep::Parts {
  ConditioningStepWeights weights;
  StepOps ops;
  ConditioningReader reader;
  // Of the pass in work.
  StepFrames frames;
  at::Tensor mels;  // [B T, mels]
  std::vector<BlockMemory> memory;

  Parts(const ConditioningStepWeights& w, bool tune)
      : weights(w), ops(w.init_weight.weight.device(), tune), reader(weights, ops) {}

  int64_t width() const { return weights.gamma.weight.size(0); }
  at::Tensor like(int64_t columns) const {
    return at::empty({frames.rows * frames.places, columns}, weights.gamma.weight.options());
  }
  at::Tensor by_head(const at::Tensor& x, int64_t kinds) const {
    const int64_t head = width() / weights.heads;
    return kinds == 1 ? x.view({x.size(0), weights.heads, head})
                      : x.view({x.size(0), weights.heads, kinds, head});
  }

  // The residual is the normalised x.
  at::Tensor block_forward(const ConditioningStepBlock& block, const at::Tensor& x,
                           const StepOps::Attended& attention) {
    BlockMemory kept{
        .x = x,
        .normed = like(width()),
        .statistics = at::empty({frames.rows, weights.groups, 2}, x.options().dtype(at::kFloat)),
        .qkv = like(3 * width()),
        .attended = like(width()),
        .attention = attention};
    ops.norm(x, frames, block.norm_weight.weight, block.norm_bias.weight, kept.normed,
             kept.statistics);
    ops.multiply({.left = kept.normed,
                  .right = matrix(block.qkv_weight.weight),
                  .out = kept.qkv,
                  .right_turned = true,
                  .bias = block.qkv_bias.weight});
    ops.attend(by_head(kept.qkv, 3), by_head(kept.attended, 1), kept.attention);
    at::Tensor out = like(width());
    ops.multiply({.left = kept.attended,
                  .right = matrix(block.project_weight.weight),
                  .out = out,
                  .right_turned = true,
                  .added = kept.normed,
                  .bias = block.project_bias.weight});
    memory.push_back(std::move(kept));
    return out;
  }

  // `gradient` of what the block gave -> that of its x, in place. `below` gets the sums of the
  // latter over all frames: the gradient of the bias that was added last to make x.
  void block_backward(const ConditioningStepBlock& block, const BlockMemory& kept,
                      at::Tensor& gradient, const TrainedWeight& below, bool overwrites) {
    const bool adds = !overwrites;
    at::Tensor flow = like(width()), wide = like(3 * width());
    ops.multiply({.left = gradient, .right = matrix(block.project_weight.weight), .out = flow});
    ops.multiply({.left = gradient,
                  .right = kept.attended,
                  .out = matrix(block.project_weight.gradient),
                  .left_turned = true,
                  .adds = adds});
    ops.attend_backward(by_head(flow, 1), by_head(kept.qkv, 3), by_head(kept.attended, 1),
                        kept.attention, by_head(wide, 3), block.qkv_bias.gradient, overwrites);
    ops.multiply({.left = wide,
                  .right = kept.normed,
                  .out = matrix(block.qkv_weight.gradient),
                  .left_turned = true,
                  .adds = adds});
    ops.multiply(
        {.left = wide, .right = matrix(block.qkv_weight.weight), .out = flow, .added = gradient});
    const at::Tensor partial = at::empty({frames.rows, 3, width()}, kept.statistics.options());
    ops.norm_backward(flow, kept.x, frames, block.norm_weight.weight, kept.statistics, gradient,
                      partial);
    ops.sum_parts(partial, {block.norm_weight.gradient, block.norm_bias.gradient, below.gradient},
                  overwrites);
  }
};

bool ConditioningStep::fits(int64_t width, int64_t heads, int64_t groups, int64_t inner) {
  return width % 64 == 0 && width % heads == 0 && width / heads % 8 == 0 && width / heads <= 256 &&
         width % groups == 0 && width / groups % 8 == 0 && inner % 64 == 0;
}

ConditioningStepWeights conditioning_step_weights(const std::vector<TrainedWeight>& in_order,
                                                  size_t blocks, size_t layers) {
  size_t next = 0;
  const auto take = [&] { return in_order.at(next++); };
  ConditioningStepWeights weights;
  weights.init_weight = take();
  weights.init_bias = take();
  for (size_t i = 0; i < blocks; ++i)
    weights.blocks.push_back({take(), take(), take(), take(), take(), take()});
  weights.latents = take();
  for (size_t i = 0; i < layers; ++i)
    weights.layers.push_back({take(), take(), take(), take(), take(), take(), take()});
  weights.gamma = take();
  return weights;
}

ConditioningStep::ConditioningStep(const ConditioningStepWeights& weights, bool tune) {
  const int64_t width = weights.gamma.weight.size(0),
                inner = weights.layers.at(0).to_q.weight.size(0);
  if (weights.gamma.weight.is_cuda() && !fits(width, weights.heads, weights.groups, inner))
    throw Error(ErrorKind::internal,
                fmt::format("a conditioning step of width {} cannot have {} heads and {} groups",
                            width, weights.heads, weights.groups));
  parts_ = std::make_unique<Parts>(weights, tune);
}
ConditioningStep::~ConditioningStep() = default;

at::Tensor ConditioningStep::forward(const at::Tensor& mels, const at::Tensor& lengths) {
  const at::NoGradGuard no_grad;
  Parts& p = *parts_;
  p.memory.clear();
  const int64_t rows = mels.size(0), places = mels.size(2);
  p.frames = {.rows = rows,
              .places = places,
              // One frame at least, so that no row attends to nothing.
              .lengths = lengths.defined()
                             ? lengths.clamp_min(1)
                             : at::full({rows}, places, mels.options().dtype(at::kLong))};
  p.mels = at::empty({rows * places, mels.size(1)}, p.weights.gamma.weight.options());
  p.mels.view({rows, places, -1}).copy_(mels.transpose(1, 2));
  at::Tensor x = p.like(p.width());
  p.ops.multiply({.left = p.mels,
                  .right = matrix(p.weights.init_weight.weight),
                  .out = x,
                  .right_turned = true,
                  .bias = p.weights.init_bias.weight});
  const StepOps::Attended attention =
      p.ops.attention_of(p.frames, p.weights.heads, p.width() / p.weights.heads);
  for (const ConditioningStepBlock& block : p.weights.blocks)
    x = p.block_forward(block, x, attention);
  return p.reader.forward(x, p.frames);
}

void ConditioningStep::backward(const at::Tensor& gradient, bool overwrites) {
  const at::NoGradGuard no_grad;
  Parts& p = *parts_;
  at::Tensor flow = p.reader.backward(gradient, overwrites);
  const auto& blocks = p.weights.blocks;
  p.ops.sum_rows(flow, blocks.back().project_bias.gradient, overwrites);
  for (size_t i = blocks.size(); i-- > 0;) {
    p.block_backward(blocks[i], p.memory[i], flow,
                     i > 0 ? blocks[i - 1].project_bias : p.weights.init_bias, overwrites);
    p.memory.pop_back();
  }
  p.ops.multiply({.left = flow,
                  .right = p.mels,
                  .out = matrix(p.weights.init_weight.gradient),
                  .left_turned = true,
                  .adds = !overwrites});
  p.mels.reset();
}

}  // namespace tandem
