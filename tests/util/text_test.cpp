#include "util/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tandem::tests {

using Names = std::vector<std::string>;

TEST(EditDistance, CountsInsertsDeletesReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("batch", "batch"), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("batch", "batches"), 2u);
  EXPECT_EQ(edit_distance("batch", "match"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("batch", "bacth"), 1u) << "a swap of neighbours is one edit";
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u) << "no part is edited twice";
}

TEST(EditDistance, IsTheSameBothWays) {
  for (const char* a : {"", "a", "ab", "epochs", "ephocs", "learning_rate"})
    for (const char* b : {"b", "ba", "epoch", "learnign_rate"})
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
}

TEST(NearestNames, BestFirstAndNoMoreThanAsked) {
  const Names names{"batch_size", "buffer_size", "match_size", "epochs", "batch_siz"};
  EXPECT_EQ(nearest_names("batch_sise", names), (Names{"batch_size", "match_size", "batch_siz"}));
  EXPECT_EQ(nearest_names("batch_sise", names, 1), Names{"batch_size"});
  EXPECT_EQ(nearest_names("zebra", names), Names{});
}

TEST(NearestNames, AWordInsideACandidateCounts) {
  EXPECT_EQ(nearest_names("rate", {"learning_rate", "seed"}), Names{"learning_rate"});
  EXPECT_EQ(nearest_names("ra", {"learning_rate"}), Names{}) << "two letters are in too many";
}

TEST(NearestNames, NamesEachCandidateOnce) {
  EXPECT_EQ(nearest_names("seeed", {"seed", "seed"}), Names{"seed"});
}

TEST(NearestNames, NothingInCommonIsNotNear) {
  EXPECT_EQ(nearest_names("ab", {"cd", "xy"}), Names{});
  EXPECT_EQ(nearest_names("x", {"y", "xy"}), Names{"xy"});
}

TEST(DidYouMean, IsASentenceOrNothing) {
  EXPECT_EQ(did_you_mean("epohcs", {"epochs"}), " Did you mean `epochs`?");
  EXPECT_EQ(did_you_mean("trian", {"train", "trial"}), " Did you mean `train` or `trial`?");
  EXPECT_EQ(did_you_mean("zebra", {"train"}), "");
  EXPECT_EQ(did_you_mean("train", {}), "");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,b", ','), (Names{"a", "b"}));
  EXPECT_EQ(split(",a,,", ','), (Names{"", "a", "", ""}));
  EXPECT_EQ(split("", ','), Names{""});
}

TEST(Text, TrimJoinLower) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(lower("/GPU:1 É"), "/gpu:1 É");
}

TEST(ParseInt, TakesWholeNumbersOnly) {
  EXPECT_EQ(parse_int("0"), 0);
  EXPECT_EQ(parse_int("-3"), -3);
  EXPECT_EQ(parse_int("+3"), 3);
  EXPECT_EQ(parse_int("007"), 7);
  EXPECT_EQ(parse_int("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_int("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  for (const char* text :
       {"", "+", "-", "+-3", "++3", "3x", " 3", "3 ", "3.0", "0x10", "1e3", "9223372036854775808"})
    EXPECT_EQ(parse_int(text), std::nullopt) << text;
}

TEST(ParseDouble, TakesNumbersOnly) {
  EXPECT_EQ(parse_double("1e-4"), 1e-4);
  EXPECT_EQ(parse_double("+.5"), 0.5);
  EXPECT_EQ(parse_double("-3"), -3.0);
  EXPECT_EQ(parse_double("1e308"), 1e308);
  for (const char* text : {"", "+", ".", "+-3", "++1", "3x", " 3", "1e", "0x10", "1e999", "1,5"})
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
}

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(uint64_t{5} << 30), "5.0 GiB");
  EXPECT_EQ(format_bytes(uint64_t{3} << 50), "3072.0 TiB");
}

TEST(FormatSeconds, PicksTheUnit) {
  EXPECT_EQ(format_seconds(0), "0.0s");
  EXPECT_EQ(format_seconds(3.25), "3.2s");
  EXPECT_EQ(format_seconds(59.9), "59.9s");
  EXPECT_EQ(format_seconds(59.97), "1m 00s");
  EXPECT_EQ(format_seconds(75), "1m 15s");
  EXPECT_EQ(format_seconds(3599.7), "1h 00m");
  EXPECT_EQ(format_seconds(3725.4), "1h 02m");
  EXPECT_EQ(format_seconds(100 * 3600), "100h 00m");
  EXPECT_EQ(format_seconds(-1), "?");
  EXPECT_EQ(format_seconds(std::nan("")), "?");
  EXPECT_EQ(format_seconds(INFINITY), "?");
}

}  // namespace tandem::tests
