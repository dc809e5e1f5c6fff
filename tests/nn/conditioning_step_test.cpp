// The pass by hand against autograd over the same conditioning encoder.
#include "nn/gpt_step/conditioning_step.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/xtts/conditioning.h"
#include "models/xtts_narrow.h"
#include "nn/finite_differences.h"

namespace tandem::tests {
namespace {

struct HandConditioning {
  Conditioning plain;
  std::vector<TrainedWeight> weights;  // in the order of Conditioning::list
  ConditioningStepWeights step;

  HandConditioning(int64_t width, int64_t heads, at::ScalarType type = at::kFloat)
      : plain(narrow_conditioning(width, heads)) {
    plain.visit("", [&](const std::string&, at::Tensor& tensor) {
      tensor = tensor.detach().to(type, /*non_blocking=*/false, /*copy=*/true).requires_grad_(true);
      weights.push_back({tensor.detach(), at::zeros(tensor.sizes(), type)});
    });
    step = conditioning_step_weights(weights, plain.blocks.size(), plain.layers.size());
    step.heads = heads;
    step.groups = norm_groups(width);
  }
  // The largest error of any gradient, relative to its largest value.
  double gradient_error(double times) {
    double worst = 0;
    size_t next = 0;
    plain.visit("", [&](const std::string&, at::Tensor& tensor) {
      const at::Tensor expected = tensor.grad() * times;
      const double scale = expected.abs().max().item<double>();
      worst = std::max(
          worst, largest_difference(weights[next++].gradient, expected) / std::max(scale, 1e-6));
    });
    return worst;
  }
};

}  // namespace

TEST(ConditioningStep, GivesLatentsAndGradientsOfAutograd) {
  // Widths with 8 and 16 groups; feed-forward parts of 106 and 170, which are filled up.
  for (const auto& [width, heads] : {std::pair{40, 5}, std::pair{64, 4}}) {
    for (const bool padded : {false, true}) {
      HandConditioning tried(width, heads);
      const at::Tensor mels = values("by hand", {3, 80, 23}, 2, -1);
      const at::Tensor lengths = padded ? at::tensor({14, 23, 0}, at::kLong) : at::Tensor();
      const at::Tensor gradient = values("flow", {3, 32, width}, 1, 0);
      const at::Tensor expected = tried.plain(mels, lengths);
      expected.backward(gradient);
      ConditioningStep step(tried.step, false);
      const at::Tensor found = step.forward(mels, lengths);
      EXPECT_LT(largest_difference(found, expected.detach()), 2e-4) << width << padded;
      step.backward(gradient, /*overwrites=*/true);
      EXPECT_LT(tried.gradient_error(1), 2e-3) << width << padded;
      // A second batch is added.
      step.forward(mels, lengths);
      step.backward(gradient, /*overwrites=*/false);
      EXPECT_LT(tried.gradient_error(2), 2e-3) << width << padded;
    }
  }
}

// In float64 but for the stream between the perceiver's layers, which is float32: latents are good
// to 1e-7 of themselves, their weighed sum to 5e-6, which is 3e-3 by the step, of gradients from 25
// to 710 long.
TEST(ConditioningStep, HasTheGradientsOfFiniteDifferences) {
  at::set_num_threads(1);  // more only wait for each other over tensors this small
  HandConditioning tried(40, 5, at::kDouble);
  const at::Tensor mels = values("differences", {3, 80, 23}, 2, -1);
  const at::Tensor lengths = at::tensor({14, 23, 6}, at::kLong);
  const at::Tensor flow = double_values("flow", {3, 32, 40});
  ConditioningStep step(tried.step, false);
  const LossFunction loss = [&] { return (step.forward(mels, lengths) * flow).sum(); };
  loss();
  step.backward(flow, /*overwrites=*/true);
  size_t next = 0;
  tried.plain.visit("", [&](const std::string& name, at::Tensor&) {
    const TrainedWeight& one = tried.weights[next++];
    const SlopeLimits limits{.step = 1e-3, .share = 1e-3, .noise = 1e-2};
    expect_gradient(name, one.weight, one.gradient, loss, limits);
  });
}

TEST(ConditioningStep, GivesPaddingNothing) {
  HandConditioning tried(64, 4);
  const at::Tensor lengths = at::tensor({14, 9}, at::kLong);
  const at::Tensor mels = values("padding", {2, 80, 23}, 2, -1);
  at::Tensor other = mels.clone();
  other[0].slice(1, 14).fill_(7);
  other[1].slice(1, 9).fill_(-3);
  const at::Tensor gradient = values("flow", {2, 32, 64}, 1, 0);
  ConditioningStep step(tried.step, false);
  const at::Tensor first = step.forward(mels, lengths).clone();
  step.backward(gradient, true);
  std::vector<at::Tensor> before;
  for (const TrainedWeight& weight : tried.weights) before.push_back(weight.gradient.clone());
  EXPECT_TRUE(first.equal(step.forward(other, lengths)));
  step.backward(gradient, true);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(before[i].equal(tried.weights[i].gradient)) << i;
}

TEST(ConditioningStep, KnowsWhichWidthsItsKernelsTake) {
  EXPECT_TRUE(ConditioningStep::fits(1024, 16, 32, 512));
  EXPECT_TRUE(ConditioningStep::fits(512, 8, 32, 512));
  EXPECT_FALSE(ConditioningStep::fits(280, 5, 8, 512));
  EXPECT_FALSE(ConditioningStep::fits(64, 4, 16, 512));
}

}  // namespace tandem::tests
