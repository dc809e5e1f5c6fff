#include "nn/channels_last.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gpu/in_child.h"
#include "nn/parameters.h"

namespace tandem {
namespace {

at::Tensor made(const char* name, at::IntArrayRef shape) {
  return make_parameter(5, name, shape, 1.0).detach().to(at::kCUDA);
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kFloat) - b).norm() / b.norm()).item<double>();
}

}  // namespace

TEST(GpuChannelsLast, ConvolvesAsFloat32Does) {
  IN_CHILD({
    const at::Tensor x = made("x", {3, 32, 70});
    const at::Tensor weight = made("w", {24, 32, 5}), turned = made("t", {32, 24, 8});
    const at::Tensor bias = made("b", {24});
    for (const bool transposed : {false, true}) {
      const auto run = [&](at::ScalarType type) {
        const at::Tensor in = x.to(type).requires_grad_(true);
        const at::Tensor by = (transposed ? turned : weight).to(type).requires_grad_(true);
        const at::Tensor rows = channels_last(in);
        const at::Tensor out =
            transposed ? conv_rows_transposed(rows, by, bias.to(type), {.stride = 4, .padding = 2})
                       : conv_rows(rows, by, bias.to(type), {.padding = 4, .dilation = 2});
        std::vector<at::Tensor> all = torch::autograd::grad({out.square().sum()}, {in, by});
        all.push_back(out.detach());
        return all;
      };
      const auto half = run(at::kBFloat16), whole = run(at::kFloat);
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(half[i].sizes(), whole[i].sizes());
        EXPECT_LT(apart(half[i], whole[i]), 1e-2) << transposed << " " << i;
      }
      EXPECT_EQ(half.back().stride(1), 1) << "its channels are not beside each other";
    }
  });
}

// Those that reach far are made as several plain ones.
TEST(GpuChannelsLast, ConvolvesWidelyAsFloat32Does) {
  IN_CHILD({
    for (const auto& [wide, dilation] : {std::pair{7, 5}, std::pair{11, 3}, std::pair{11, 5}}) {
      const at::Tensor x = made("x", {3, 64, 73}), bias = made("b", {48});
      const at::Tensor weight = 0.1 * made("w", {48, 64, wide});
      const RowConvOptions options{.padding = (wide - 1) / 2 * dilation, .dilation = dilation};
      const auto run = [&](at::ScalarType type) {
        const at::Tensor in = x.to(type).requires_grad_(true),
                         by = weight.to(type).requires_grad_(true),
                         on = bias.to(type).requires_grad_(true);
        const at::Tensor out = conv_rows(channels_last(in), by, on, options);
        std::vector<at::Tensor> all = torch::autograd::grad({out.square().sum()}, {in, by, on});
        all.push_back(out.detach());
        return all;
      };
      const auto half = run(at::kBFloat16), whole = run(at::kFloat);
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(half[i].sizes(), whole[i].sizes());
        EXPECT_LT(apart(half[i], whole[i]), 1e-2) << wide << " " << dilation << " " << i;
      }
      EXPECT_EQ(half.back().stride(1), 1) << "its channels are not beside each other";
    }
  });
}

}  // namespace tandem
