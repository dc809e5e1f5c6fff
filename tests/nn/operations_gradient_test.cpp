// The backward passes of our own operations against central differences of their forward passes.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "nn/dropout.h"
#include "nn/finite_differences.h"
#include "nn/flat_conv.h"
#include "nn/frame_norm.h"
#include "nn/layers.h"
#include "nn/leaky_cast.h"
#include "nn/map_distance.h"
#include "nn/recomputed.h"

namespace tandem::tests {
namespace {

// The sum of what `of` gives, weighed at random in float64.
LossFunction weighed(const std::function<at::Tensor()>& of) {
  return [of] {
    const at::Tensor out = of();
    return (out.to(at::kDouble) * double_values("weighed", out.sizes().vec())).sum();
  };
}

}  // namespace

TEST(OperationGradient, OfFlatConvolutions) {
  at::set_num_threads(1);  // more only wait for each other over tensors this small
  struct Case {
    int64_t rows, places, in, out, kernel, stride, groups;
    double slope;
  };
  const Case cases[] = {
      {2, 50, 1, 8, 5, 3, 1, 0.1},       // a single channel: windows are copied
      {2, 41, 8, 12, 5, 3, 1, 0.1},      // of a period
      {2, 67, 12, 12, 41, 2, 4, 0.1},    // narrow groups, joined
      {2, 9, 32, 32, 41, 1, 16, 0.1},    // a window wider than a row
      {1, 9, 256, 512, 41, 4, 16, 0.1},  // fewer groups than turns
      {1, 5, 512, 1024, 9, 2, 16, 0.1},  // more
      {3, 11, 16, 1, 3, 1, 1, 1},        // scores, without a leaky ReLU
  };
  for (const Case& one : cases) {
    const std::string of = " of " + std::to_string(one.in) + ", " + std::to_string(one.kernel);
    const at::Tensor x = double_values("x" + of, {one.rows, one.places, one.in}),
                     weight = double_values("w" + of, {one.out, one.in / one.groups, one.kernel}),
                     bias = double_values("b" + of, {one.out});
    const LossFunction loss = weighed([&] {
      return flat_conv(x, weight, bias,
                       {.stride = one.stride, .groups = one.groups, .slope = one.slope});
    });
    expect_slope("input" + of, x, loss);
    expect_slope("weight" + of, weight, loss);
    expect_slope("bias" + of, bias, loss);
  }
}

// It computes in float32: a number is good to 1e-7, the weighed sum of some 300 to 2e-6, which is
// 1e-4 by the step; what it bends over that is less than the share allows.
TEST(OperationGradient, OfNormsOverFrames) {
  const SlopeLimits limits{.step = 1e-2, .share = 3e-4, .noise = 1e-3};
  const at::Tensor x = values("frames", {3, 9, 24}, 2, 0.5), weight = values("scale", {24}, 0.5, 1),
                   bias = values("shift", {24}), lengths = at::tensor({5, 9, 1}, at::kLong);
  const LossFunction loss = weighed([&] { return frame_norm(x, lengths, weight, bias, 4); });
  expect_slope("x", x, loss, limits);
  expect_slope("weight", weight, loss, limits);
  expect_slope("bias", bias, loss, limits);
}

TEST(OperationGradient, OfDistancesOfMaps) {
  const at::Tensor a = double_values("a", {6, 5, 11}), b = double_values("b", {6, 5, 11}, 1.5),
                   valid = at::tensor({int64_t{31}, int64_t{12}, int64_t{0}});
  const LossFunction loss = weighed([&] { return map_distance(a, b, valid, 3); });
  expect_slope("a", a, loss);
  expect_slope("b", b, loss);
}

TEST(OperationGradient, OfLeakyReluAsItIs) {
  const at::Tensor x = double_values("x", {4, 300});
  expect_slope("x", x, weighed([&] { return leaky_cast(x, 0.1, at::kDouble); }));
}

// Rounding has no slope of its own: over a step that is many of bfloat16's it averages out. Along
// x nothing changes its sign, so that the slope is the same however far it goes; a number is off by
// 2^-10 of itself or so, the sum of 4,000 by 1e-3 of its spread.
TEST(OperationGradient, OfLeakyReluRoundedToHalf) {
  const at::Tensor x = values("x", {4000}), along = x.clone();
  const LossFunction loss = weighed([&] { return leaky_cast(x, 0.1, at::kBFloat16); });
  x.requires_grad_(true);
  loss().backward();
  ASSERT_EQ(x.grad().scalar_type(), at::kFloat);
  const double slope = number((x.grad() * along).sum());
  const double measured = measured_slope(x, along, loss, 0.4);
  EXPECT_GT(std::abs(measured), 1);
  EXPECT_NEAR(slope, measured, 0.1);
}

// A part within a part, weights that are used twice and one that does not learn.
TEST(OperationGradient, OfPartsComputedAgain) {
  const at::Tensor x = double_values("x", {3, 6}), w = double_values("w", {6, 6}),
                   v = double_values("v", {6}), fixed = double_values("fixed", {6});
  const RecomputedPart inner = [](const at::Tensor& in, const std::vector<at::Tensor>& weights) {
    return at::tanh(at::matmul(in, weights[0])) * weights[1];
  };
  const RecomputedPart outer = [&](const at::Tensor& in, const std::vector<at::Tensor>& weights) {
    return in + recomputed(inner, in * weights[2], {weights[0], weights[1]}) * weights[0].sum(0);
  };
  const LossFunction loss = weighed([&] { return recomputed(outer, x * x, {w, v, fixed}); });
  for (const at::Tensor& one : {x, w, v}) at::Tensor(one).requires_grad_(true);
  expect_slope("x", x, loss);
  expect_slope("w", w, loss);
  expect_slope("v", v, loss);
  EXPECT_FALSE(fixed.requires_grad() || fixed.grad().defined());
}

TEST(OperationGradient, OfCountedDropout) {
  const at::Tensor x = double_values("x", {3, 50});
  const CountedDropout dropout{.share = 0.4, .seed = 5, .step = at::full({}, 2, at::kLong)};
  const LossFunction loss = weighed([&] { return dropout(x, 3); });
  expect_slope("x", x, loss);
  EXPECT_GT(number(x.grad().eq(0).sum()), 20) << "what is dropped has none";
}

TEST(OperationGradient, OfAGptsBlock) {
  GptBlock block = GptBlock::make(3, "block", 24, 4, 2);
  const at::Tensor x = double_values("x", {2, 7, 24});
  std::vector<std::pair<std::string, at::Tensor>> tensors = {{"x", x}};
  block.visit("block", [&](const std::string& name, at::Tensor& tensor) {
    // Wider than at the start, where attention is even everywhere.
    tensor = (tensor.detach() + values(name, tensor.sizes().vec(), 0.3)).to(at::kDouble);
    tensors.emplace_back(name, tensor);
  });
  for (const auto& [name, tensor] : tensors)
    expect_slope(name, tensor, weighed([&] { return block(x); }));
}

}  // namespace tandem::tests
