// The Fréchet distance between two clouds of features, each taken as a normal distribution:
//   |m1 - m2|² + tr(S1 + S2 - 2 (S1 S2)^½)
// On features of sound it is called FAD. In float64 on the CPU.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

// Mean and covariance of rows that come in parts. The order of parts changes the last bits only.
class FeatureCloud {
 public:
  void add(const at::Tensor& rows);  // [N, D], N >= 0, any device and type
  void add(const FeatureCloud& other);
  int64_t count() const { return count_; }
  const at::Tensor& mean() const { return mean_; }  // [D]; undefined while empty
  at::Tensor covariance() const;                    // [D, D], over count - 1; zeros for one row

 private:
  int64_t count_ = 0;
  at::Tensor mean_, scatter_;  // [D], [D, D]: sum of (x - mean)(x - mean)ᵀ
};

// Both must have rows of one width. Never below 0.
double frechet_distance(const FeatureCloud& one, const FeatureCloud& other);

// The distance of a single feature [D], as a distribution without spread: |x - m|² + tr(S).
double frechet_distance(const at::Tensor& feature, const FeatureCloud& reference);

}  // namespace tandem
