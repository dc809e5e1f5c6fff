#include "nn/map_distance.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "nn/tensors.h"

namespace tandem::tests {

TEST(MapDistance, IsTheMeanOverWhatIsValid) {
  // Two rows of two columns, three channels, four places of five samples.
  const at::Tensor a = at::arange(48, at::kFloat).view({4, 3, 4}), b = a * 0;
  const at::Tensor found = map_distance(a, b, at::tensor({int64_t{11}, int64_t{0}}), 5);
  const auto mean = [&](int64_t row, int64_t places) {
    return number(a.narrow(0, 2 * row, 2).narrow(2, 0, places).mean());
  };
  EXPECT_NEAR(number(found[0]), mean(0, 3), 1e-5);
  EXPECT_NEAR(number(found[1]), mean(1, 1), 1e-5);  // one place at least
  const at::Tensor turned = a.transpose(1, 2).contiguous().transpose(1, 2);
  EXPECT_LT(
      largest_difference(found, map_distance(turned, b, at::tensor({int64_t{11}, int64_t{0}}), 5)),
      1e-6);
}

}  // namespace tandem::tests
