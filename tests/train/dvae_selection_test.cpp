#include "train/stages/dvae_selection.h"

#include <gtest/gtest.h>

#include "nn/tensors.h"
#include "train/dvae_making.h"
#include "train/stages/codebook.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

MelClips two_clips() { return {values("one", {80, 40}, 2, -1), values("two", {80, 24}, 2, -1)}; }

}  // namespace

TEST(SelectCodes, KeepsTheMostUsedByRisingIndex) {
  const at::Tensor usage = at::tensor({3.0f, 9.0f, 1.0f, 3.0f, 7.0f, 3.0f});
  EXPECT_EQ(numbers(select_codes(usage, 3)), (std::vector<int64_t>{0, 1, 4}));
  EXPECT_EQ(numbers(select_codes(usage, 4)), (std::vector<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(numbers(select_codes(at::ones({5}), 2)), (std::vector<int64_t>{0, 1}));
}

TEST(DvaeSelection, ReportsWhatSurvivesAndWhatItCosts) {
  Dvae dvae = made_dvae();
  const DvaeJudgement whole = judge_dvae(dvae, two_clips());
  EXPECT_EQ(whole.frames, 64);
  EXPECT_EQ(whole.codes.numel(), 16);
  const double first = number(dvae.reconstruct(two_clips()[0].unsqueeze(0)).loss);
  const double second = number(dvae.reconstruct(two_clips()[1].unsqueeze(0)).loss);
  EXPECT_NEAR(whole.loss, (first * 40 + second * 24) / 64, 1e-6);

  // The clips' own codes but one, and one that they do not use.
  dvae.cluster_size = at::bincount(whole.codes, {}, 48).to(at::kFloat);
  const at::Tensor embed = dvae.encoder.codebook.clone();
  const int64_t rarest = std::get<0>(at::_unique(whole.codes))[0].item<int64_t>();
  dvae.cluster_size[rarest] = 0;
  const int64_t used = dvae.cluster_size.count_nonzero().item<int64_t>();
  const DvaeSelection report = select_codes(dvae, used + 1, two_clips());
  const at::Tensor lost = (whole.codes == rarest).to(at::kDouble).mean();
  EXPECT_TRUE(report.judged);
  EXPECT_EQ(report.before, 48);
  EXPECT_EQ(report.after, used + 1);
  EXPECT_NEAR(report.counted_share, 1, 1e-6);
  // Codes with a count of 0 are kept from the first on.
  EXPECT_NEAR(report.clip_share, rarest == 0 ? 1 : 1 - number(lost), 1e-6);
  EXPECT_NEAR(report.loss_before, whole.loss, 1e-6);
  EXPECT_NEAR(report.loss_after, judge_dvae(dvae, two_clips()).loss, 1e-6);
  EXPECT_EQ(dvae.encoder.size.codes, used + 1);
  EXPECT_EQ(dvae.cluster_size.numel(), used + 1);
  // A frame whose code survives keeps its vector.
  const DvaeJudgement after = judge_dvae(dvae, two_clips());
  const at::Tensor vectors = dvae.encoder.codebook.index_select(1, after.codes);
  const at::Tensor same = (vectors == embed.index_select(1, whole.codes)).all(0);
  EXPECT_TRUE(at::equal(same, whole.codes != rarest) || rarest == 0);
}

TEST(DvaeSelection, WithoutClipsCountsOnly) {
  Dvae dvae = made_dvae();
  dvae.cluster_size = at::arange(48, at::kFloat);
  const DvaeSelection report = select_codes(dvae, 2, {});
  EXPECT_FALSE(report.judged);
  EXPECT_NEAR(report.counted_share, (47.0 + 46.0) / (48 * 47 / 2), 1e-6);
}

TEST(DvaeStatistics, AreReadAndWrittenBesideTheCodebook) {
  NamedWeights named;
  Dvae dvae = made_dvae();
  dvae.visit("", [&](const std::string& name, at::Tensor& tensor) { named[name] = tensor; });
  EXPECT_FALSE(named.contains("codebook.cluster_size"));
  named["codebook.cluster_size"] = values("sizes", {48}, 1, 2);
  named["codebook.embed_avg"] = values("sums", {12, 48});
  Weights weights(named);
  Dvae loaded = Dvae::load(weights, "");
  EXPECT_TRUE(same_bits(loaded.cluster_size, named.at("codebook.cluster_size")));
  NamedWeights written;
  loaded.visit("", [&](const std::string& name, at::Tensor& tensor) { written[name] = tensor; });
  EXPECT_EQ(written.size(), named.size());
  EXPECT_TRUE(same_bits(written.at("codebook.embed_avg"), named.at("codebook.embed_avg")));
}

TEST(DvaeStatistics, OfAnotherShapeAreRefused) {
  NamedWeights named;
  made_dvae().visit("", [&](const std::string& name, at::Tensor& tensor) { named[name] = tensor; });
  named["codebook.cluster_size"] = at::ones({47});
  Weights weights(named);
  const Thrown thrown = thrown_by([&] { Dvae::load(weights, ""); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_EQ(
      thrown.sentence,
      "`memory`: `codebook.cluster_size` has the shape [47]; expected [48] beside the others");
}

}  // namespace tandem::tests
