// Gradients of the conditioning encoder and the perceiver by finite differences.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "models/xtts_narrow.h"
#include "nn/finite_differences.h"

namespace tandem::tests {
namespace {

// It computes in float32: latents are good to some 1e-6 of themselves, their weighed sum to 4e-5,
// which is 2e-2 by the step, of gradients from 14 to 750 long. Slopes bend by 1e-3 at most over it.
constexpr SlopeLimits single{.step = 1e-3, .share = 3e-3, .noise = 4e-2};

void expect_gradients(int64_t width, int64_t heads, const at::Tensor& lengths) {
  at::set_num_threads(1);  // more only wait for each other over tensors this small
  Conditioning conditioning = narrow_conditioning(width, heads);
  conditioning.visit("", [](const std::string&, at::Tensor& t) { t.requires_grad_(true); });
  at::Tensor mels = values("mels", {3, 80, 23}, 2, -1);
  mels.requires_grad_(true);
  const at::Tensor flow = double_values("flow", {3, 32, width});
  const LossFunction loss = [&] {
    return (conditioning(mels, lengths).to(at::kDouble) * flow).sum();
  };
  loss().backward();
  expect_gradient("mels", mels, mels.grad(), loss, single);
  conditioning.visit("", [&](const std::string& name, at::Tensor& tensor) {
    expect_gradient(name, tensor, tensor.grad(), loss, single);
  });
}

}  // namespace

TEST(ConditioningGradient, OfWholeRows) { expect_gradients(40, 5, {}); }

TEST(ConditioningGradient, OfPaddedRows) {
  expect_gradients(64, 4, at::tensor({14, 23, 6}, at::kLong));
}

}  // namespace tandem::tests
