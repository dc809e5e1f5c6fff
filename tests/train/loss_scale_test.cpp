#include "train/rules/loss_scale.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tandem/error.h"

namespace tandem {

namespace {

double value_of(const LossScale& scale) { return scale.scale().item<double>(); }
at::Tensor norm_of(double norm) { return at::full({}, norm, at::kFloat); }

}  // namespace

TEST(LossScale, DoublesAfterGoodStepsInARowOnly) {
  LossScale scale({.first = 8, .growth_steps = 3}, at::kCPU);
  scale.update(norm_of(1));
  scale.update(norm_of(1));
  EXPECT_EQ(value_of(scale), 8);
  scale.update(norm_of(NAN));
  EXPECT_EQ(value_of(scale), 4);
  scale.update(norm_of(1));
  scale.update(norm_of(1));
  EXPECT_EQ(value_of(scale), 4);  // the two before the overflow do not count
  scale.update(norm_of(1));
  EXPECT_EQ(value_of(scale), 8);
  scale.update(norm_of(1));
  EXPECT_EQ(value_of(scale), 8);
}

TEST(LossScale, StaysInItsBounds) {
  LossScale scale({.first = 2, .smallest = 1, .largest = 4, .growth_steps = 1}, at::kCPU);
  for (int i = 0; i < 5; ++i) scale.update(norm_of(1));
  EXPECT_EQ(value_of(scale), 4);
  for (int i = 0; i < 5; ++i) scale.update(norm_of(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(value_of(scale), 1);
}

TEST(LossScale, ChangesInPlace) {
  LossScale scale({.first = 8, .growth_steps = 1}, at::kCPU);
  const void* address = scale.scale().data_ptr();
  const at::Tensor held = scale.scale();
  scale.update(norm_of(1));
  EXPECT_EQ(held.item<double>(), 16);
  EXPECT_EQ(scale.scale().data_ptr(), address);
}

TEST(LossScale, GoesOnFromItsState) {
  LossScale first({.first = 8, .growth_steps = 3}, at::kCPU);
  first.update(norm_of(NAN));
  first.update(norm_of(1));
  first.update(norm_of(1));
  NamedTensors saved;
  for (const auto& [name, tensor] : first.state()) saved.emplace_back(name, tensor.clone());
  LossScale second({.first = 1024, .growth_steps = 3}, at::kCPU);
  second.load_state(saved);
  second.update(norm_of(1));
  EXPECT_EQ(value_of(second), 8);
  saved.pop_back();
  try {
    second.load_state(saved);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_NE(std::string(error.what()).find("`loss_scale.good` is missing"), std::string::npos);
  }
}

}  // namespace tandem
