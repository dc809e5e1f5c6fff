#include "train/rules/pass_places.h"

#include <gtest/gtest.h>

namespace tandem::tests {

TEST(PassPlaces, AddAtMostASixteenthAndNeverMoreThanASequence) {
  for (const int64_t longest : {40, 100, 632, 2000}) {
    int64_t before = 0;
    for (int64_t places = 1; places < 20000; ++places) {
      const int64_t rounded = pass_places(places, longest);
      ASSERT_GE(rounded, places);
      ASSERT_GE(rounded, before) << "the largest batch does not hold this one";
      ASSERT_LT(rounded - places, std::max<int64_t>(64, std::min(places / 16, longest)));
      before = rounded;
    }
  }
}

TEST(PassPlaces, AreFewSoThatGraphsAreShared) {
  EXPECT_EQ(pass_places(3 * 631, 632), 1920);
  EXPECT_EQ(pass_places(16 * 631, 632), 10240);
  EXPECT_EQ(pass_places(16 * 631 - 300, 632), 10240);
  EXPECT_EQ(pass_places(16 * 631 - 600, 632), 10240 - 512);
  EXPECT_EQ(pass_places(0, 632), 64);
}

}  // namespace tandem::tests
