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

}  // namespace tandem::tests
