#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "nn/adamw.h"

namespace tandem::tests {

// What makes the gradients of split weights overwrites them.
TEST(AdamW, ClearsGradientsOfWholeWeightsOnly) {
  for (const bool split : {false, true}) {
    for (const double good : {0.0, 1.0}) {
      AdamWBuffers buffers{.weight = at::ones({64}, split ? at::kBFloat16 : at::kFloat),
                           .low = split ? at::zeros({64}, at::kShort) : at::Tensor(),
                           .gradient = at::full({64}, 0.5),
                           .mean = at::zeros({64}),
                           .square = at::zeros({64}),
                           .average = {},
                           .decays = at::zeros({1}, at::kByte)};
      at::Tensor values = at::ones({adamw_values});
      values[adamw_good] = good;
      adamw_step(buffers, values, {});
      EXPECT_EQ(buffers.gradient.sum().item<double>(), split ? 32 : 0);
      EXPECT_EQ(buffers.weight.to(at::kFloat).equal(at::ones({64})), good == 0);
    }
  }
}

// A gradient in bfloat16 counts as the same numbers in float32.
TEST(AdamW, TakesGradientsInHalf) {
  AdamWBuffers buffers[2];
  const at::Tensor gradient = at::sin(at::arange(128)).to(at::kBFloat16);
  for (const bool half : {false, true}) {
    AdamWBuffers& b = buffers[half ? 1 : 0];
    b = {.weight = at::ones({128}, at::kBFloat16),
         .low = at::zeros({128}, at::kShort),
         .gradient = half ? gradient : gradient.to(at::kFloat),
         .mean = at::zeros({128}),
         .square = at::zeros({128}),
         .average = {},
         .decays = at::ones({2}, at::kByte)};
    adamw_step(b, at::full({adamw_values}, 0.5), {});
  }
  EXPECT_TRUE(buffers[0].weight.equal(buffers[1].weight));
  EXPECT_TRUE(buffers[0].low.equal(buffers[1].low));
  EXPECT_TRUE(buffers[0].mean.equal(buffers[1].mean));
  EXPECT_TRUE(buffers[1].gradient.equal(gradient));
}

}  // namespace tandem::tests
