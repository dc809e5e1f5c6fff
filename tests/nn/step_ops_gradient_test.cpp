// The leaves of the passes by hand, on the CPU: each backward operation against central differences
// of its forward one, in float64, with rows that are padded, whole and of one frame.
#include "nn/gpt_step/step_ops.h"

#include <gtest/gtest.h>

#include "nn/finite_differences.h"

namespace tandem::tests {
namespace {

const StepFrames& some_frames() {
  static const StepFrames frames{
      .rows = 4, .places = 7, .lengths = at::tensor({4, 7, 1, 6}, at::kLong)};
  return frames;
}

at::Tensor made(const Shape& shape) { return at::full(shape, NAN, at::kDouble); }

}  // namespace

TEST(StepOpsGradient, OfNorms) {
  constexpr int64_t places = 28, width = 24, groups = 4;
  StepOps ops(at::kCPU, false);
  const at::Tensor x = double_values("x", {places, width}, 2, 0.5),
                   weight = double_values("weight", {width}, 0.5, 1),
                   bias = double_values("bias", {width}), statistics = made({4, groups, 2}),
                   flow = double_values("flow", {places, width});
  const LossFunction loss = [&] {
    const at::Tensor out = made({places, width});
    ops.norm(x, some_frames(), weight, bias, out, statistics);
    return (out * flow).sum();
  };
  loss();
  const at::Tensor x_gradient = made({places, width}), partial = made({4, 3, width});
  ops.norm_backward(flow, x, some_frames(), weight, statistics, x_gradient, partial);
  expect_gradient("x", x, x_gradient, loss);
  const at::Tensor sums[3] = {made({width}), made({width}), made({width})};
  ops.sum_parts(partial, {sums[0], sums[1], sums[2]}, /*overwrites=*/true);
  expect_gradient("weight", weight, sums[0], loss);
  expect_gradient("bias", bias, sums[1], loss);
  // What was added to all frames of x alike.
  const at::Tensor below = at::zeros({width}, at::kDouble), alone = x.clone();
  expect_gradient("below", below, sums[2], [&] {
    x.copy_(alone + below);
    return loss();
  });
}

TEST(StepOpsGradient, OfAttentionWithinARow) {
  constexpr int64_t places = 28, heads = 3, width = 8;
  StepOps ops(at::kCPU, false);
  const at::Tensor qkv = double_values("qkv", {places, heads, 3, width}, 1.5),
                   out = made({places, heads, width}),
                   flow = double_values("flow", {places, heads, width});
  StepOps::Attended memory = ops.attention_of(some_frames(), heads, width);
  const LossFunction loss = [&] {
    ops.attend(qkv, out, memory);
    return (out * flow).sum();
  };
  loss();
  const at::Tensor gradient = made(qkv.sizes().vec());
  const at::Tensor bias_gradient = double_values("so far", {heads * 3 * width});
  const at::Tensor so_far = bias_gradient.clone();
  ops.attend_backward(flow, qkv, out, memory, gradient, bias_gradient, /*overwrites=*/false);
  const at::Tensor alone = qkv.clone();
  expect_gradient("all", qkv, gradient, loss);
  for (const int64_t kind : {0, 1, 2})
    expect_gradient(std::to_string(kind), qkv.select(2, kind), gradient.select(2, kind), loss);
  const at::Tensor bias = at::zeros({heads * 3 * width}, at::kDouble);
  expect_gradient("bias", bias, bias_gradient - so_far, [&] {
    qkv.copy_(alone + bias.view({heads, 3, width}));
    return loss();
  });
}

TEST(StepOpsGradient, OfReadingARowWithQueriesOfItsOwn) {
  constexpr int64_t rows = 4, each = 3, heads = 2, width = 8;
  StepOps ops(at::kCPU, false);
  const Shape many = {rows * (each + some_frames().places), heads, width};
  const at::Tensor queries = double_values("queries", {rows * each, heads, width}, 1.5),
                   keys = double_values("keys", many, 1.5), read = double_values("values", many),
                   flow = double_values("flow", queries.sizes().vec());
  const LossFunction loss = [&] {
    return (ops.read(queries, keys, read, some_frames()).out * flow).sum();
  };
  const auto gradients =
      ops.read_backward(flow, queries, keys, read, ops.read(queries, keys, read, some_frames()));
  expect_gradient("queries", queries, gradients[0], loss);
  expect_gradient("keys", keys, gradients[1], loss);
  expect_gradient("values", read, gradients[2], loss);
}

}  // namespace tandem::tests
