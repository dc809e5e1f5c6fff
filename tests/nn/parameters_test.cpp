#include "nn/parameters.h"

#include <gtest/gtest.h>

#include "nn/tensors.h"

namespace tandem::tests {

TEST(Parameters, ComeFromSeedAndName) {
  const at::Tensor x = make_parameter(3, "blocks.0.qkv.weight", {40, 50}, 0.02);
  EXPECT_TRUE(same_bits(x, make_parameter(3, "blocks.0.qkv.weight", {40, 50}, 0.02)));
  EXPECT_FALSE(same_bits(x, make_parameter(3, "blocks.1.qkv.weight", {40, 50}, 0.02)));
  EXPECT_FALSE(same_bits(x, make_parameter(4, "blocks.0.qkv.weight", {40, 50}, 0.02)));
}

TEST(Parameters, DoNotDependOnWhatWasDrawnBefore) {
  const at::Tensor x = make_parameter(0, "a", {8}, 1.0);
  at::randn({100});
  make_parameter(0, "b", {8}, 1.0);
  EXPECT_TRUE(same_bits(x, make_parameter(0, "a", {8}, 1.0)));
}

TEST(Parameters, HaveTheMeanAndDeviationAskedFor) {
  const at::Tensor x = make_parameter(0, "a", {200, 500}, 0.5, 2.0);
  EXPECT_NEAR(number(x.mean()), 2.0, 0.01);
  EXPECT_NEAR(number(x.std()), 0.5, 0.005);
  EXPECT_LT(std::abs(number(((x - 2.0) / 0.5).pow(3).mean())), 0.05) << "not symmetric";
}

TEST(Parameters, WithoutDeviationAreConstant) {
  EXPECT_TRUE(same_bits(make_parameter(0, "bias", {4}, 0.0), at::zeros({4})));
  EXPECT_TRUE(same_bits(make_parameter(0, "norm", {4}, 0.0, 1.0), at::ones({4})));
}

TEST(Parameters, AreFloatLeavesThatWantGradients) {
  const at::Tensor x = make_parameter(0, "a", {2, 3}, 1.0);
  EXPECT_EQ(x.scalar_type(), at::kFloat);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(x.is_leaf());
  EXPECT_EQ(x.sizes(), (std::vector<int64_t>{2, 3}));
}

}  // namespace tandem::tests
