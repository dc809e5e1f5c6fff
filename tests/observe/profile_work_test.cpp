#include "observe/profile_work.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "observe/profile_limits.h"

namespace tandem::tests {
namespace {

double flops(const char* name, const std::vector<c10::IValue>& inputs) {
  return flops_of(work_rule(name), c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
}

double bytes(const std::vector<c10::IValue>& values) {
  return bytes_of(c10::ArrayRef<const c10::IValue>(values.data(), values.size()));
}

std::vector<c10::IValue> convolution(const at::Tensor& input, const at::Tensor& weight,
                                     int64_t stride, int64_t padding, int64_t dilation,
                                     bool transposed) {
  const auto one = [](int64_t value) { return c10::IValue(c10::List<int64_t>({value})); };
  return {input, weight, c10::IValue(), one(stride), one(padding), one(dilation), transposed};
}

}  // namespace

TEST(ProfileWork, CountsAProductTwiceItsMultiplications) {
  const at::Tensor a = at::zeros({3, 5}), b = at::zeros({5, 7}), c = at::zeros({7});
  EXPECT_EQ(flops("aten::mm", {a, b}), 2 * 3 * 5 * 7);
  EXPECT_EQ(flops("aten::addmm", {c, a, b}), 2 * 3 * 5 * 7);
  EXPECT_EQ(flops("aten::bmm", {at::zeros({4, 3, 5}), at::zeros({4, 5, 7})}), 4 * 2 * 3 * 5 * 7);
  EXPECT_EQ(flops("aten::add", {a, a}), 0);
}

TEST(ProfileWork, CountsConvolutionsByTheLengthTheyGive) {
  const at::Tensor input = at::zeros({2, 6, 50}), weight = at::zeros({8, 6, 3});
  const auto expected = [&](int64_t stride, int64_t padding, int64_t dilation) {
    const at::Tensor out = at::conv1d(input, weight, {}, stride, padding, dilation);
    return 2.0 * static_cast<double>(out.numel()) * 6 * 3;
  };
  EXPECT_EQ(flops("aten::convolution", convolution(input, weight, 1, 1, 1, false)),
            expected(1, 1, 1));
  EXPECT_EQ(flops("aten::convolution", convolution(input, weight, 3, 0, 2, false)),
            expected(3, 0, 2));
  // Every input element meets every filter that starts at its channel.
  EXPECT_EQ(flops("aten::convolution", convolution(input, at::zeros({6, 8, 4}), 2, 1, 1, true)),
            2.0 * 2 * 6 * 50 * 8 * 4);
}

TEST(ProfileWork, SkipsHalfOfACausalAttention) {
  const at::Tensor q = at::zeros({2, 4, 10, 16});
  const char* name = "aten::_scaled_dot_product_flash_attention_for_cpu";
  const double whole = 4.0 * 2 * 4 * 10 * 10 * 16;
  EXPECT_EQ(flops(name, {q, q, q, 0.0, false}), whole);
  EXPECT_EQ(flops(name, {q, q, q, 0.0, true}), whole / 2);
}

TEST(ProfileWork, CountsBytesOfTensorsAndListsButOnceWhatIsBroadcast) {
  EXPECT_EQ(bytes({at::zeros({10}), at::zeros({3}, at::kLong), 4, c10::IValue()}), 40 + 24);
  EXPECT_EQ(bytes({std::vector<at::Tensor>{at::zeros({2}), at::zeros({3})}}), 20);
  EXPECT_EQ(bytes({at::zeros({1}).expand({1000})}), 4);
  EXPECT_EQ(work_rule("aten::transpose").kind, WorkKind::none);
  EXPECT_EQ(work_rule("aten::add_").kind, WorkKind::bytes);
}

TEST(ProfileWork, TakesTheLargerShareOfTheTwoLimits) {
  const DeviceLimits limits{.flops = 100, .bytes = 10};
  EXPECT_DOUBLE_EQ(share_of_limit(limits, 50, 1, 1), 0.5);
  EXPECT_DOUBLE_EQ(share_of_limit(limits, 50, 8, 1), 0.8);
  EXPECT_DOUBLE_EQ(share_of_limit(limits, 50, 8, 2), 0.4);
  EXPECT_EQ(share_of_limit(limits, 0, 0, 1), 0);
  EXPECT_EQ(share_of_limit(limits, 5, 5, 0), 0);
  EXPECT_EQ(share_of_limit({}, 5, 5, 1), 0);
}

}  // namespace tandem::tests
