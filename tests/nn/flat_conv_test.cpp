// Against LibTorch's own convolutions.
#include "nn/flat_conv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "nn/parameters.h"
#include "nn/tensors.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

struct FlatCase {
  int64_t rows, places, in, out, kernel, stride, groups;
  double slope;
};

at::Tensor flat_values(const char* name, at::IntArrayRef shape) {
  return make_parameter(6, name, shape, 1.0).detach().to(at::kDouble).requires_grad_(true);
}

}  // namespace

TEST(FlatConv, GivesValuesAndGradientsOfConvolutions) {
  const FlatCase cases[] = {
      {3, 57, 1, 12, 15, 1, 1, 0.1},      // a single channel
      {2, 50, 1, 8, 5, 3, 1, 0.1},        //
      {2, 41, 8, 12, 5, 3, 1, 0.1},       // of a period
      {2, 67, 12, 12, 41, 2, 4, 0.1},     // narrow groups, joined
      {3, 61, 32, 64, 41, 4, 16, 0.1},    //
      {2, 9, 32, 32, 41, 1, 16, 0.1},     // a window wider than a row
      {1, 1, 16, 16, 41, 4, 4, 0.1},      // one place
      {1, 15, 256, 512, 41, 4, 16, 0.1},  // groups joined in pairs: fewer than turns
      {1, 9, 512, 1024, 41, 4, 16, 0.1},  // groups as they are: more
      {3, 11, 16, 1, 3, 1, 1, 1},         // scores
  };
  for (const FlatCase& one : cases) {
    const at::Tensor x = flat_values("x", {one.rows, one.places, one.in});
    const at::Tensor weight = flat_values("w", {one.out, one.in / one.groups, one.kernel});
    const at::Tensor bias = flat_values("b", {one.out});
    const at::Tensor found = flat_conv(
        x, weight, bias, {.stride = one.stride, .groups = one.groups, .slope = one.slope});
    at::Tensor expected =
        at::conv1d(x.transpose(1, 2), weight, bias, one.stride, (one.kernel - 1) / 2, 1, one.groups)
            .transpose(1, 2);
    if (one.slope != 1) expected = at::leaky_relu(expected, one.slope);
    ASSERT_EQ(found.sizes(), expected.sizes()) << one.in << " " << one.kernel;
    EXPECT_LT(largest_difference(found, expected), 1e-10) << one.in << " " << one.kernel;
    const at::Tensor flow = flat_values("g", expected.sizes()).detach();
    const auto ours = torch::autograd::grad({found}, {x, weight, bias}, {flow});
    const auto theirs = torch::autograd::grad({expected}, {x, weight, bias}, {flow});
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(ours[i].sizes(), theirs[i].sizes());
      EXPECT_LT(largest_difference(ours[i], theirs[i]), 1e-9)
          << "gradient " << i << " of " << one.in << " channels, window of " << one.kernel;
    }
  }
}

TEST(FlatConv, OfWeightsThatDoNotLearnGivesTheInputItsGradient) {
  const at::Tensor x = flat_values("x", {2, 20, 8}), bias = flat_values("b", {8}).detach();
  const at::Tensor weight = flat_values("w", {8, 4, 5}).detach();
  const auto of = [&](const at::Tensor& out) { return torch::autograd::grad({out.sum()}, {x})[0]; };
  const at::Tensor ours = of(flat_conv(x, weight, bias, {.stride = 2, .groups = 2}));
  const at::Tensor theirs = of(at::conv1d(x.transpose(1, 2), weight, bias, 2, 2, 1, 2));
  EXPECT_LT(largest_difference(ours, theirs), 1e-10);
}

TEST(FlatConv, RefusesWeightsThatDoNotFit) {
  const at::Tensor x = at::zeros({1, 5, 8}), bias = at::zeros({4});
  const Thrown thrown = thrown_by([&] { flat_conv(x, at::zeros({4, 3, 5}), bias, {.groups = 2}); });
  EXPECT_EQ(thrown.kind, "internal");
  EXPECT_EQ(thrown.sentence,
            "a convolution of 8 channels in 2 groups cannot have a weight of [4, 3, 5] with "
            "stride 1");
}

}  // namespace tandem::tests
