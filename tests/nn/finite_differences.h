// Gradients judged by central differences of what they are said to be the gradients of.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "models/xtts_values.h"
#include "nn/tensors.h"

namespace tandem::tests {

inline at::Tensor double_values(const std::string& name, const Shape& shape, double scale = 1,
                                double mean = 0) {
  return values(name, shape, scale, mean).to(at::kDouble);
}

using LossFunction = std::function<at::Tensor()>;  // reads the tensors that are moved

// How fast the loss grows as `x` moves along `along`. x is moved in place, and put back.
inline double measured_slope(const at::Tensor& x, const at::Tensor& along, const LossFunction& loss,
                             double step) {
  const at::NoGradGuard no_grad;
  const at::Tensor kept = x.clone();
  const auto at_distance = [&](double distance) {
    x.copy_(at::add(kept, along, distance));
    return number(loss());
  };
  const double above = at_distance(step), below = at_distance(-step);
  x.copy_(kept);
  return (above - below) / (2 * step);
}

// The same of one number of `x`, which has no gaps.
inline double slope_at(const at::Tensor& x, int64_t place, const LossFunction& loss, double step) {
  const at::Tensor cell = x.detach().view({-1}).narrow(0, place, 1);
  return measured_slope(cell, at::ones_like(cell), loss, step);
}

// The defaults are for losses in float64 from end to end: differences are good to about 1e-16 of
// the loss by the step, and the third derivative counts with the square of the step.
struct SlopeLimits {
  double step = 1e-6;
  double share = 1e-5;  // of the gradient's length, by which the slopes may be apart,
  double noise = 1e-8;  // and by this besides, which the gradient must stand out of
};

// That `gradient` is the loss's in `x`: along a random direction, which moves every number of x, so
// that whatever is wrong in any of them shows. Slopes along it are about half the gradient's
// length.
inline void expect_gradient(const std::string& name, const at::Tensor& x,
                            const at::Tensor& gradient, const LossFunction& loss,
                            const SlopeLimits& limits = {}) {
  ASSERT_TRUE(gradient.defined()) << name;
  ASSERT_EQ(gradient.sizes(), x.sizes()) << name;
  const at::Tensor along = values(name + " along", x.sizes().vec()).to(x.scalar_type());
  const at::Tensor exact = gradient.detach().to(at::kDouble);
  const double length = number(exact.norm()), slope = number((exact * along).sum());
  EXPECT_GT(length, 10 * limits.noise) << name << " has no part in it";
  EXPECT_NEAR(slope, measured_slope(x, along, loss, limits.step),
              limits.share * length + limits.noise)
      << name << ", whose gradient has a length of " << length;
}

// The same of the gradient that autograd gives to `x`, a leaf.
inline void expect_slope(const std::string& name, at::Tensor x, const LossFunction& loss,
                         const SlopeLimits& limits = {}) {
  const bool wanted = x.requires_grad();
  x.requires_grad_(true);
  x.mutable_grad() = at::Tensor();
  loss().backward();
  expect_gradient(name, x, x.grad(), loss, limits);
  x.requires_grad_(wanted);
}

}  // namespace tandem::tests
