// Convolutions as products on the GPU in bfloat16 against LibTorch's on the CPU in float32.
#include "nn/flat_conv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gpu/in_child.h"
#include "nn/parameters.h"

namespace tandem {
namespace {

struct GpuFlatCase {
  int64_t rows, places, in, out, kernel, stride, groups;
  double slope;
};

}  // namespace

TEST(GpuFlatConv, GivesValuesAndGradientsOfConvolutions) {
  IN_CHILD({
    const GpuFlatCase cases[] = {
        {4, 3000, 1, 128, 15, 1, 1, 0.1},    {4, 2000, 128, 128, 41, 2, 4, 0.1},
        {4, 1000, 128, 256, 41, 2, 16, 0.1}, {4, 500, 256, 512, 41, 4, 16, 0.1},
        {4, 130, 512, 1024, 41, 4, 16, 0.1}, {4, 70, 1024, 1024, 41, 1, 16, 0.1},
        {4, 70, 1024, 1024, 5, 1, 1, 0.1},   {4, 70, 1024, 1, 3, 1, 1, 1},
        {12, 900, 1, 32, 5, 3, 1, 0.1},      {12, 300, 32, 128, 5, 3, 1, 0.1},
        {12, 100, 128, 512, 5, 3, 1, 0.1},
    };
    const auto half = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
    for (const GpuFlatCase& one : cases) {
      const auto drawn = [&](const char* name, at::IntArrayRef shape, double deviation) {
        return make_parameter(5, name, shape, deviation).detach().cpu().to(at::kBFloat16);
      };
      const double inner = static_cast<double>(one.in / one.groups * one.kernel);
      const at::Tensor x = drawn("x", {one.rows, one.places, one.in}, 1),
                       w = drawn("w", {one.out, one.in / one.groups, one.kernel},
                                 1 / std::sqrt(inner)),
                       b = drawn("b", {one.out}, 0.5);
      std::vector<at::Tensor> found[2];
      for (const bool gpu : {false, true}) {
        std::vector<at::Tensor> leaves;
        for (const at::Tensor& t : {x, w, b})
          leaves.push_back((gpu ? t.to(half) : t.to(at::kFloat)).requires_grad_(true));
        at::Tensor out;
        if (gpu) {
          out = flat_conv(leaves[0], leaves[1], leaves[2],
                          {.stride = one.stride, .groups = one.groups, .slope = one.slope});
        } else {
          out = at::conv1d(leaves[0].transpose(1, 2), leaves[1], leaves[2], one.stride,
                           (one.kernel - 1) / 2, 1, one.groups)
                    .transpose(1, 2);
          if (one.slope != 1) out = at::leaky_relu(out, one.slope);
        }
        const at::Tensor flow = drawn("g", out.sizes(), 1).to(out.options());
        const auto gradients = torch::autograd::grad({out}, leaves, {flow});
        found[gpu] = {out.detach(), gradients[0], gradients[1], gradients[2]};
      }
      for (size_t i = 0; i < 4; ++i) {
        const at::Tensor a = found[1][i].cpu().to(at::kFloat), e = found[0][i];
        // Where the sum before the leaky unit is nearly zero, bfloat16 decides its sign, and the
        // gradient of that element with it: about one in 1,500.
        const double bound = i > 0 && one.slope != 1 ? 4e-2 : 2e-2;
        EXPECT_LT((a - e).norm().item<double>() / e.norm().item<double>(), bound)
            << i << " of " << one.in << " to " << one.out << ", window of " << one.kernel;
      }
    }
  });
}

}  // namespace tandem
