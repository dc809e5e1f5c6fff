#include "nn/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

CountedDropout half(const at::Tensor& rows, int64_t step = 3) {
  return {.share = 0.5, .seed = 7, .step = at::full({}, step, at::kLong), .rows = rows};
}

TEST(CountedDropout, DropsItsShareAndKeepsTheMean) {
  const at::Tensor factors = dropout_factors(half({}), at::ones({100, 200}), 1);
  EXPECT_NEAR(factors.mean().item<double>(), 1, 0.03);
  EXPECT_NEAR(factors.eq(0).to(at::kFloat).mean().item<double>(), 0.5, 0.02);
}

TEST(CountedDropout, ARowsMaskIsItsOwnWhateverBatchItIsIn) {
  const at::Tensor rows = at::tensor({11, 12, 13, 14}, at::kLong);
  const at::Tensor like = at::ones({4, 5, 8});
  const at::Tensor whole = dropout_factors(half(rows), like, 2);
  EXPECT_TRUE(at::equal(whole.narrow(0, 2, 2),
                        dropout_factors(half(rows.narrow(0, 2, 2)), like.narrow(0, 2, 2), 2)));
  EXPECT_TRUE(at::equal(whole.flip({0}), dropout_factors(half(rows.flip({0})), like, 2)));
  EXPECT_FALSE(at::equal(whole[0], whole[1]));
  EXPECT_FALSE(at::equal(whole, dropout_factors(half(rows), like, 3)));
  EXPECT_FALSE(at::equal(whole, dropout_factors(half(rows, 4), like, 2)));
}

TEST(CountedDropout, TakesABatchOfNothing) {
  const at::Tensor none = at::empty({0}, at::kLong);
  EXPECT_EQ(dropout_factors(half(none), at::empty({0, 5, 8}), 2).numel(), 0);
}

}  // namespace
}  // namespace tandem
