#include "nn/leaky_cast.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gpu/in_child.h"
#include "nn/parameters.h"

namespace tandem {

TEST(GpuLeakyCast, GivesTheBitsOfTwoOperations) {
  IN_CHILD({
    for (const int64_t count : {1, 3, 4, 1027, 300000}) {
      const at::Tensor x =
          make_parameter(5, "x", {count}, 1.0).detach().to(at::kCUDA).requires_grad_(true);
      const at::Tensor flow =
          make_parameter(5, "g", {count}, 1.0).detach().to(at::kCUDA, at::kBFloat16);
      const at::Tensor ours = leaky_cast(x, 0.1, at::kBFloat16);
      const at::Tensor theirs = at::leaky_relu(x, 0.1).to(at::kBFloat16);
      EXPECT_TRUE(ours.equal(theirs)) << count;
      const at::Tensor a = torch::autograd::grad({ours}, {x}, {flow})[0],
                       b = torch::autograd::grad({theirs}, {x}, {flow})[0];
      EXPECT_EQ(a.scalar_type(), at::kFloat);
      EXPECT_LT((a - b).abs().max().item<double>(), 1e-6) << count;
    }
  });
}

TEST(GpuLeakyCast, KeepsTheOrderOfMemory) {
  IN_CHILD({
    const auto turned = [](const char* name) {
      return make_parameter(5, name, {3, 50, 24}, 1.0).detach().to(at::kCUDA).transpose(1, 2);
    };
    const at::Tensor x = turned("x").requires_grad_(true);
    const at::Tensor flow = turned("g").to(at::kBFloat16);
    const at::Tensor ours = leaky_cast(x, 0.1, at::kBFloat16);
    const at::Tensor theirs = at::leaky_relu(x, 0.1).to(at::kBFloat16);
    EXPECT_EQ(ours.strides(), x.strides());
    EXPECT_TRUE(ours.equal(theirs));
    // Gradients may come in another order.
    for (const at::Tensor& given : {flow, flow.contiguous()}) {
      const at::Tensor a = torch::autograd::grad({ours}, {x}, {given}, true)[0],
                       b = torch::autograd::grad({theirs}, {x}, {given}, true)[0];
      EXPECT_EQ(a.strides(), x.strides());
      EXPECT_LT((a - b).abs().max().item<double>(), 1e-6);
    }
  });
}

}  // namespace tandem
