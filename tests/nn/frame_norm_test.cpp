#include "nn/frame_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "nn/parameters.h"

namespace tandem::tests {
namespace {

at::Tensor drawn_frames(const char* name, at::IntArrayRef shape) {
  return make_parameter(4, name, shape, 1.0).detach();
}

}  // namespace

TEST(FrameNorm, IsGroupNormWhereAllFramesAreReal) {
  const at::Tensor x = drawn_frames("x", {2, 9, 24}), weight = drawn_frames("w", {24}),
                   bias = drawn_frames("b", {24});
  const at::Tensor ours = frame_norm(x, at::full({2}, 9, at::kLong), weight, bias, 4);
  const at::Tensor theirs =
      at::group_norm(x.transpose(1, 2), 4, weight, bias, 1e-5).transpose(1, 2);
  EXPECT_LT((ours - theirs).abs().max().item<double>(), 1e-5);
}

TEST(FrameNorm, GivesAPaddedRowWhatItHasAloneAndItsPaddingNothing) {
  const at::Tensor x = drawn_frames("x", {2, 9, 24}).requires_grad_(true),
                   weight = drawn_frames("w", {24}).requires_grad_(true),
                   bias = drawn_frames("b", {24}).requires_grad_(true);
  const at::Tensor lengths = at::tensor({5, 9}, at::kLong);
  const at::Tensor both = frame_norm(x, lengths, weight, bias, 4);
  (both * drawn_frames("g", {2, 9, 24})).sum().backward();
  const at::Tensor gradient = x.grad().clone();
  EXPECT_EQ(both[0].narrow(0, 5, 4).abs().sum().item<double>(), 0);
  EXPECT_EQ(gradient[0].narrow(0, 5, 4).abs().sum().item<double>(), 0);

  const at::Tensor alone = x.detach().narrow(0, 0, 1).narrow(1, 0, 5).clone().requires_grad_(true);
  const at::Tensor out = frame_norm(alone, at::tensor({5}, at::kLong), weight, bias, 4);
  (out * drawn_frames("g", {2, 9, 24}).narrow(0, 0, 1).narrow(1, 0, 5)).sum().backward();
  EXPECT_LT((both.narrow(0, 0, 1).narrow(1, 0, 5) - out).abs().max().item<double>(), 1e-5);
  EXPECT_LT((gradient.narrow(0, 0, 1).narrow(1, 0, 5) - alone.grad()).abs().max().item<double>(),
            1e-5);
}

}  // namespace tandem::tests
