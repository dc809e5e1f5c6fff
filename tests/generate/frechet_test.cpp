#include "generate/frechet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/captured.h"

namespace tandem {
namespace {

// sin(a (i + 1)(j + 1)) + b j cos(0.37 i (j + 2)), which the reference computes as well.
at::Tensor waving_rows(int64_t rows, int64_t width, double a, double b) {
  const at::Tensor i = at::arange(rows, at::kDouble).unsqueeze(1);
  const at::Tensor j = at::arange(width, at::kDouble).unsqueeze(0);
  return at::sin(a * (i + 1) * (j + 1)) + b * j * at::cos(i * (j + 2) * 0.37);
}

FeatureCloud cloud_of(const at::Tensor& rows) {
  FeatureCloud cloud;
  cloud.add(rows);
  return cloud;
}

// Rows of mean `mean` and exactly the given variances, uncorrelated.
FeatureCloud axes(std::vector<double> variances, double mean) {
  const auto width = static_cast<int64_t>(variances.size());
  const at::Tensor scale =
      (at::tensor(variances, at::kDouble) * static_cast<double>(2 * width - 1) / 2).sqrt();
  const at::Tensor rows = at::diag(scale);
  return cloud_of(at::cat({rows, -rows}) + mean);
}

}  // namespace

// numpy 2.4.6, scipy 1.17.1: |m1 - m2|² + tr(S1 + S2 - 2 sqrtm(S1 S2)).
TEST(Frechet, IsWhatScipySays) {
  const FeatureCloud reference = cloud_of(waving_rows(55, 6, 1.1, 0.2) + 0.5);
  const at::Tensor rows = waving_rows(40, 6, 0.7, 0.3);
  EXPECT_NEAR(frechet_distance(cloud_of(rows), reference), 1.9756155269429536, 1e-10);
  EXPECT_NEAR(frechet_distance(reference, cloud_of(rows)), 1.9756155269429536, 1e-10);
  EXPECT_NEAR(frechet_distance(rows[3], reference), 11.097291483436479, 1e-10);
}

TEST(Frechet, TakesFewerRowsThanDimensions) {
  const FeatureCloud reference = cloud_of(waving_rows(55, 6, 1.1, 0.2) + 0.5);
  const FeatureCloud few = cloud_of(waving_rows(4, 6, 0.7, 0.3));
  EXPECT_NEAR(frechet_distance(few, reference), 4.1426892669522335, 1e-6);
}

TEST(Frechet, OfUncorrelatedCloudsIsThatOfTheirDeviations) {
  const FeatureCloud one = axes({4, 9, 1}, 0), other = axes({1, 16, 1}, 2);
  // Means 2 apart in three dimensions; deviations 2 and 1, 3 and 4, 1 and 1.
  EXPECT_NEAR(frechet_distance(one, other), 3 * 4 + 1 + 1 + 0, 1e-9);
}

TEST(Frechet, OfACloudToItselfIsNothing) {
  const FeatureCloud cloud = cloud_of(waving_rows(300, 16, 0.3, 0.1));
  EXPECT_NEAR(frechet_distance(cloud, cloud), 0, 1e-9);
  EXPECT_GE(frechet_distance(cloud, cloud), 0);
}

TEST(Frechet, ACloudMadeInPartsIsTheSame) {
  const at::Tensor rows = waving_rows(101, 5, 0.9, 0.4) + 1000;
  FeatureCloud parts;
  for (const at::Tensor& part : rows.split(7)) parts.add(part.to(at::kDouble));
  parts.add(at::empty({0, 5}, at::kDouble));
  FeatureCloud merged = cloud_of(rows.narrow(0, 0, 50));
  merged.add(cloud_of(rows.narrow(0, 50, 51)));
  const FeatureCloud whole = cloud_of(rows);
  for (const FeatureCloud* other : {&parts, &merged}) {
    EXPECT_EQ(other->count(), 101);
    EXPECT_TRUE(at::allclose(other->mean(), whole.mean(), 1e-13, 1e-10));
    EXPECT_TRUE(at::allclose(other->covariance(), whole.covariance(), 1e-10, 1e-10));
  }
  EXPECT_TRUE(at::allclose(whole.covariance(), at::cov(rows.t()), 1e-10, 1e-10));
}

TEST(Frechet, OneRowHasNoSpread) {
  const FeatureCloud one = cloud_of(waving_rows(1, 4, 0.5, 0.5));
  EXPECT_EQ(one.covariance().abs().max().item<double>(), 0);
  const FeatureCloud reference = cloud_of(waving_rows(30, 4, 0.4, 0.1));
  EXPECT_NEAR(frechet_distance(one, reference), frechet_distance(one.mean(), reference), 1e-9);
}

TEST(Frechet, RefusesAnEmptySideAndFeaturesOfAnotherWidth) {
  FeatureCloud cloud = cloud_of(waving_rows(5, 4, 0.5, 0.5));
  EXPECT_STREQ(error_of([&] { frechet_distance(cloud, FeatureCloud()); }).what(),
               "a Fréchet distance needs features on both sides");
  EXPECT_STREQ(error_of([&] { cloud.add(waving_rows(5, 3, 0.5, 0.5)); }).what(),
               "features of width 4 met features of width 3");
}

}  // namespace tandem
