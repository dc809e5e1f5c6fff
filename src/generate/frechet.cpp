#include "generate/frechet.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem {
namespace {

void check_clouds(const FeatureCloud& one, const FeatureCloud& other) {
  if (one.count() == 0 || other.count() == 0) {
    throw Error(ErrorKind::internal, "a Fréchet distance needs features on both sides");
  }
}

// Of a symmetric matrix without negative eigenvalues, but for rounding.
at::Tensor square_root(const at::Tensor& matrix) {
  const auto [values, vectors] = at::linalg_eigh(matrix);
  return at::matmul(vectors * values.clamp_min(0).sqrt(), vectors.t());
}

}  // namespace

void FeatureCloud::add(const at::Tensor& rows) {
  at::NoGradGuard no_grad;
  if (rows.size(0) == 0) return;
  const at::Tensor x = rows.to(at::kCPU, at::kDouble);
  FeatureCloud part;
  part.count_ = x.size(0);
  part.mean_ = x.mean(0);
  const at::Tensor centred = x - part.mean_;
  part.scatter_ = at::matmul(centred.t(), centred);
  add(part);
}

void FeatureCloud::add(const FeatureCloud& other) {
  at::NoGradGuard no_grad;
  if (other.count_ == 0) return;
  if (count_ == 0) {
    *this = other;
    return;
  }
  if (mean_.size(0) != other.mean_.size(0)) {
    throw Error(ErrorKind::internal, fmt::format("features of width {} met features of width {}",
                                                 mean_.size(0), other.mean_.size(0)));
  }
  const auto mine = static_cast<double>(count_), theirs = static_cast<double>(other.count_);
  const at::Tensor apart = other.mean_ - mean_;
  mean_ = mean_ + apart * (theirs / (mine + theirs));
  scatter_ =
      scatter_ + other.scatter_ + at::outer(apart, apart) * (mine * theirs / (mine + theirs));
  count_ += other.count_;
}

at::Tensor FeatureCloud::covariance() const {
  return scatter_ / static_cast<double>(std::max<int64_t>(1, count_ - 1));
}

// tr((S1 S2)^½) is the sum of the roots of the eigenvalues of S1 S2. Those are the ones of the
// symmetric S1^½ S2 S1^½, whose eigenvalues are real and can be had to full precision.
double frechet_distance(const FeatureCloud& one, const FeatureCloud& other) {
  at::NoGradGuard no_grad;
  check_clouds(one, other);
  const at::Tensor first = one.covariance(), second = other.covariance();
  const at::Tensor root = square_root(first);
  const at::Tensor product = at::matmul(at::matmul(root, second), root);
  const at::Tensor values = at::linalg_eigvalsh((product + product.t()) / 2).clamp_min(0);
  const double means = (one.mean() - other.mean()).square().sum().item<double>();
  const double spreads = (first.trace() + second.trace() - 2 * values.sqrt().sum()).item<double>();
  return std::max(0.0, means + spreads);
}

double frechet_distance(const at::Tensor& feature, const FeatureCloud& reference) {
  FeatureCloud one;
  one.add(feature.unsqueeze(0));
  check_clouds(one, reference);
  const double mean = (one.mean() - reference.mean()).square().sum().item<double>();
  return mean + reference.covariance().trace().item<double>();
}

}  // namespace tandem
