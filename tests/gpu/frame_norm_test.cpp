// The kernels against tensor operations on the CPU, values and gradients.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gpu/in_child.h"

#include "nn/frame_norm.h"
#include "nn/parameters.h"

namespace tandem {
namespace {

TEST(GpuFrameNorm, GivesWhatTheCpuGives) {
  IN_CHILD({
    for (const int64_t width : {1024, 280, 64}) {
      const int64_t groups = width == 280 ? 8 : width == 64 ? 16 : 32;
      const at::Tensor lengths = at::tensor({50, 37, 1}, at::kLong);
      std::vector<at::Tensor> of_cpu, of_gpu;
      for (const bool gpu : {false, true}) {
        const at::Device device = gpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
        const auto drawn = [&](const char* name, at::IntArrayRef shape) {
          return make_parameter(4, name, shape, 1.0).detach().to(device).requires_grad_(true);
        };
        const at::Tensor x = drawn("x", {3, 50, width}), weight = drawn("w", {width}),
                         bias = drawn("b", {width});
        const at::Tensor out = frame_norm(x, lengths.to(device), weight, bias, groups);
        (out * drawn("g", {3, 50, width}).detach()).sum().backward();
        auto& values = gpu ? of_gpu : of_cpu;
        for (const at::Tensor& value : {out.detach(), x.grad(), weight.grad(), bias.grad()})
          values.push_back(value.cpu());
      }
      for (size_t i = 0; i < of_cpu.size(); ++i) {
        const double scale = of_cpu[i].abs().max().item<double>();
        EXPECT_LT((of_cpu[i] - of_gpu[i]).abs().max().item<double>(), 2e-5 * scale) << i;
      }
    }
  });
}

}  // namespace
}  // namespace tandem
