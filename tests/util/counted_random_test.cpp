#include "util/counted_random.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <vector>

namespace tandem::tests {

// A change of any of these breaks every saved run: the order of its batches would be another.
TEST(CountedRandom, ValuesArePinned) {
  EXPECT_EQ(mix_bits(0), 0xe220a8397b1dcdafULL);  // SplitMix64's first output from seed 0
  EXPECT_EQ(mix_bits(1), 0x910a2dec89025cc1ULL);
  EXPECT_EQ(hash_text(""), 0xc3817c016ba4ff30ULL);
  EXPECT_EQ(hash_text("byte window"), 0x6a8c56875231c24dULL);
  EXPECT_EQ(counted_draw(0, "byte window", 0, 0), 0x13274310f85c1f6eULL);
  EXPECT_EQ(counted_draw(7, "parameter", 3, 5), 0x8e24fcd2d88a02dcULL);
  EXPECT_EQ(counted_draw(UINT64_MAX, "x", UINT64_MAX, UINT64_MAX), 0xbd1d4b1ca6c8d12fULL);
  const std::vector<uint64_t> expected{74, 282, 748, 712, 131, 183};
  std::vector<uint64_t> drawn;
  for (uint64_t batch : {0, 1})
    for (uint64_t sample : {0, 1, 2})
      drawn.push_back(counted_below(1000, 0, "byte window", batch, sample));
  EXPECT_EQ(drawn, expected);
}

TEST(CountedRandom, TheSameArgumentsGiveTheSameDraw) {
  static_assert(counted_draw(1, "a", 2, 3) == counted_draw(1, "a", 2, 3));
  std::string purpose = "byte";
  purpose += " window";
  EXPECT_EQ(counted_draw(0, purpose, 0, 0), counted_draw(0, "byte window", 0, 0));
}

TEST(CountedRandom, EveryArgumentMatters) {
  const uint64_t base = counted_draw(1, "a", 2, 3);
  EXPECT_NE(counted_draw(2, "a", 2, 3), base);
  EXPECT_NE(counted_draw(1, "b", 2, 3), base);
  EXPECT_NE(counted_draw(1, "a", 3, 3), base);
  EXPECT_NE(counted_draw(1, "a", 2, 4), base);
  EXPECT_NE(counted_draw(1, "a", 3, 2), base) << "id and count are not interchangeable";
  EXPECT_NE(counted_draw(2, "a", 1, 3), base) << "nor are seed and id";
}

TEST(CountedRandom, DrawsDoNotRepeat) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (uint64_t id = 0; id < 100; ++id)
      for (uint64_t count = 0; count < 100; ++count)
        seen.insert(counted_draw(seed, "p", id, count));
  EXPECT_EQ(seen.size(), 100'000u);
}

TEST(CountedRandom, OneMoreFlipsHalfTheBits) {
  double flipped = 0;
  for (uint64_t i = 0; i < 10'000; ++i)
    flipped += std::popcount(counted_draw(0, "p", 0, i) ^ counted_draw(0, "p", 0, i + 1));
  EXPECT_NEAR(flipped / 10'000, 32.0, 0.3);
}

TEST(CountedBelow, IsUniform) {
  constexpr uint64_t bins = 97;
  constexpr double draws = 97'000;
  std::vector<double> counts(bins);
  for (uint64_t i = 0; i < draws; ++i) ++counts.at(counted_below(bins, 3, "p", i / 300, i % 300));
  double chi_square = 0;
  for (const double count : counts) {
    const double off = count - draws / bins;
    chi_square += off * off / (draws / bins);
  }
  // 96 degrees of freedom: below 51 or above 158 is a chance of 1 in 10,000 each way.
  EXPECT_GT(chi_square, 51);
  EXPECT_LT(chi_square, 158);
}

TEST(CountedBelow, StaysBelow) {
  for (const uint64_t bound : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 40, UINT64_MAX})
    for (uint64_t i = 0; i < 1000; ++i) EXPECT_LT(counted_below(bound, 0, "p", 0, i), bound);
}

}  // namespace tandem::tests
