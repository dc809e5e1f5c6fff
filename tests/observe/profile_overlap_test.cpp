#include "observe/profile_overlap.h"

#include <gtest/gtest.h>

#include "observe/profile_making.h"

namespace tandem::tests {

TEST(ProfileOverlap, MergesWhatTouches) {
  const auto spans = merged({{5, 6}, {1, 2}, {1.5, 3}, {3, 4}, {1.6, 1.7}});
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].start, 1);
  EXPECT_EQ(spans[0].end, 4);
  EXPECT_EQ(total_seconds(spans), 4);
  EXPECT_EQ(total_seconds(merged({})), 0);
}

TEST(ProfileOverlap, CountsTimeThatLiesInBoth) {
  const auto a = merged({{0, 2}, {4, 6}, {8, 9}}), b = merged({{1, 5}, {8.5, 20}});
  EXPECT_DOUBLE_EQ(common_seconds(a, b), 1 + 1 + 0.5);
  EXPECT_DOUBLE_EQ(common_seconds(b, a), 2.5);
  EXPECT_EQ(common_seconds(a, {}), 0);
}

TEST(ProfileOverlap, OfTheFeedIsWhatRanBesidePassesAndUpdates) {
  const Profile profile = made_profile(*simulate_devices(1)[0]);
  const Overlaps overlaps = overlaps_of(profile);
  EXPECT_NEAR(overlaps.copies.seconds, 0.02, 1e-9);
  EXPECT_NEAR(overlaps.copies.hidden, 0.01, 1e-9);  // the other half lay in the wait
  EXPECT_NEAR(overlaps.beside.hidden, 0.01, 1e-9);
}

TEST(ProfileOverlap, OfAGpuIsWhatOtherStreamsDidMeanwhile) {
  Profile profile = made_profile(*simulate_devices(1)[0]);
  profile.kernels.kernels = {
      {.name = "big", .stream = 7, .start = 0, .end = 10},
      {.name = "Memcpy HtoD", .stream = 9, .start = 8, .end = 12, .bytes = 100, .copies = true},
      {.name = "prepare", .stream = 8, .start = 1, .end = 2},
      {.name = "Memcpy DtoD", .stream = 7, .start = 12, .end = 13, .bytes = 100, .copies = true}};
  const Overlaps overlaps = overlaps_of(profile);
  EXPECT_DOUBLE_EQ(overlaps.copies.seconds, 5);
  EXPECT_DOUBLE_EQ(overlaps.copies.hidden, 2);
  EXPECT_DOUBLE_EQ(overlaps.beside.seconds, 5);
  EXPECT_DOUBLE_EQ(overlaps.beside.hidden, 3);
}

}  // namespace tandem::tests
