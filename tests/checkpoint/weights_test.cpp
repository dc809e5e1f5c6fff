#include "checkpoint/weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

at::Tensor numbers(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return (at::arange(count, at::kFloat) * 0.37).sin().reshape(shape);
}

at::Tensor row_norms(const at::Tensor& v) {
  return v.reshape({v.size(0), -1}).pow(2).sum(1).sqrt().view({-1, 1, 1});
}

}  // namespace

TEST(Weights, TakesWhatLiesBehindItsPrefixAsFloat32) {
  const std::string bytes = format_safetensors({{"model/a.weight", at::ones({2, 3}, at::kHalf)},
                                                {"model/n", at::ones({}, at::kLong)},
                                                {"other", at::ones({1})}},
                                               {});
  const auto file = open_tensor_bytes(bytes, "f");
  Weights weights(*file, "model/");
  EXPECT_TRUE(weights.has("a.weight"));
  EXPECT_FALSE(weights.has("other"));
  EXPECT_EQ(weights.shape("a.weight"), (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(weights.shape("none").empty());
  EXPECT_EQ(weights.take("a.weight").scalar_type(), at::kFloat);
  EXPECT_EQ(weights.take("n").scalar_type(), at::kLong);
  EXPECT_EQ(weights.source(), "f");
}

TEST(Weights, OneErrorListsAllThatIsMissing) {
  Weights weights({{"a", at::ones({1})}});
  EXPECT_NO_THROW(weights.require_complete("model"));
  EXPECT_FALSE(weights.take("x").defined());
  EXPECT_FALSE(weights.take("x").defined());
  EXPECT_FALSE(weights.take("y").defined());
  EXPECT_FALSE(weights.take_if_there("z").defined());
  const Thrown thrown = thrown_by([&] { weights.require_complete("model"); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_EQ(thrown.sentence, "`memory` holds no model: `x`, `y` missing");
  for (int i = 0; i < 10; ++i) weights.take("w" + std::to_string(i));
  EXPECT_TRUE(contains(thrown_by([&] { weights.require_complete("model"); }).sentence,
                       "`w5` and 4 more missing"));
}

TEST(Weights, KnowsWhatNobodyTook) {
  Weights weights({{"a", at::ones({1})}, {"b", at::ones({1})}, {"c", at::ones({1})}});
  weights.take("b");
  EXPECT_EQ(weights.untaken(), (std::vector<std::string>{"a", "c"}));
}

TEST(Weights, FoldsBothFormsOfWeightNorm) {
  const at::Tensor v = numbers({4, 3, 5}), g = numbers({4, 1, 1}) + 2;
  const at::Tensor expected = g * v / row_norms(v);
  const std::string parts = ".parametrizations.weight.original";
  Weights weights({{"plain.weight", v},
                   {"old.weight_g", g},
                   {"old.weight_v", v},
                   {"new" + parts + "0", g},
                   {"new" + parts + "1", v}});
  EXPECT_TRUE(at::equal(weights.take_folded("plain"), v));
  EXPECT_LT((weights.take_folded("old") - expected).abs().max().item<float>(), 1e-6);
  EXPECT_LT((weights.take_folded("new") - expected).abs().max().item<float>(), 1e-6);
  EXPECT_TRUE(weights.untaken().empty());
  EXPECT_TRUE(weights.missing().empty());
}

TEST(Weights, ARowOfZerosFoldsToZeros) {
  const at::Tensor folded = fold_weight_norm(at::ones({2, 1}), at::tensor({0.f, 3.f}).view({2, 1}));
  EXPECT_TRUE(at::equal(folded.flatten(), at::tensor({0.f, 1.f})));
}

TEST(Weights, HalfAWeightNormIsMissingTheOtherHalf) {
  Weights weights({{"a.weight_v", at::ones({2, 2})},
                   {"b.weight_g", at::ones({3, 1})},
                   {"b.weight_v", at::ones({2, 2})}});
  EXPECT_FALSE(weights.take_folded("a").defined());
  EXPECT_FALSE(weights.take_folded("c").defined());
  EXPECT_EQ(weights.missing(), (std::vector<std::string>{"a.weight_g", "c.weight"}));
  const Thrown thrown = thrown_by([&] { weights.take_folded("b"); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_EQ(thrown.sentence, "`memory`: the weight norm of `b` has 3 scales for 2 rows");
}

}  // namespace tandem::tests
