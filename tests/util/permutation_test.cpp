#include "util/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem {

TEST(Permutation, HitsEveryPlaceOnce) {
  for (const uint64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 65536, 65537}) {
    const Permutation permutation(size, 42 + size);
    std::vector<int> hits(size);
    for (uint64_t i = 0; i < size; ++i) {
      ASSERT_LT(permutation[i], size);
      ++hits[permutation[i]];
    }
    for (const int count : hits) EXPECT_EQ(count, 1);
  }
}

TEST(Permutation, KeysDifferAndNothingStaysInPlaceByDesign) {
  const Permutation a(1000, 1), b(1000, 2);
  int same = 0, fixed = 0, neighbours = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    same += a[i] == b[i];
    fixed += a[i] == i;
    neighbours += i > 0 && a[i] == a[i - 1] + 1;
  }
  EXPECT_LT(same, 10);
  EXPECT_LT(fixed, 10);
  EXPECT_LT(neighbours, 10);
}

TEST(Permutation, ManyBillionPlacesNeedNoTable) {
  const Permutation permutation(uint64_t{1} << 40, 7);
  EXPECT_LT(permutation[(uint64_t{1} << 40) - 1], uint64_t{1} << 40);
}

}  // namespace tandem
