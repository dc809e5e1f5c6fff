#include "train/rules/code_counts.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"

namespace tandem {
namespace {

// Counts and measures by numpy and scipy.
class CodeCounts : public ::testing::Test {
 protected:
  at::Tensor given(const std::string& name) const { return file_.tensors.at(name); }
  void expect_close(const at::Tensor& ours, const std::string& name, double tolerance) const {
    const at::Tensor expected = given(name).to(at::kDouble);
    ASSERT_EQ(ours.sizes(), expected.sizes()) << name;
    EXPECT_LT((ours.to(at::kDouble) - expected).abs().max().item<double>(), tolerance) << name;
  }
  SafetensorsFile file_ =
      read_safetensors(TANDEM_SOURCE_DIR "/tests/train/fixtures/quality.safetensors");
};

TEST_F(CodeCounts, AreCountedAsNumpyDoes) {
  const at::Tensor counts = count_codes(given("codes"), 64);
  expect_close(counts, "codes.counts", 1e-6);
  const at::Tensor measures = at::stack({code_usage(counts), code_perplexity(counts)});
  expect_close(measures, "codes.measures", 1e-4);
}

TEST_F(CodeCounts, MeasuresOfPlainCases) {
  EXPECT_NEAR(code_perplexity(at::full({16}, 5.0, at::kFloat)).item<double>(), 16, 1e-4);
  at::Tensor one = at::zeros({16});
  one[3] = 100;
  EXPECT_NEAR(code_perplexity(one).item<double>(), 1, 1e-6);
  EXPECT_NEAR(code_usage(one).item<double>(), 1.0 / 16, 1e-6);
  EXPECT_EQ(code_perplexity(at::zeros({16})).item<double>(), 0);
  EXPECT_EQ(code_usage(at::zeros({16})).item<double>(), 0);
}

}  // namespace
}  // namespace tandem
