#include "models/musicgen/delay_pattern.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

DelayPattern pattern_of(int64_t new_tokens, int64_t codebooks = 4, int64_t channels = 1) {
  return {.codebooks = codebooks, .channels = channels, .columns = 1 + new_tokens};
}

// A row a codebook: P for pads, - for what is drawn, digits for what is forced.
std::string picture(const DelayPattern& pattern, const at::Tensor& prompt) {
  const at::Tensor tokens = pattern.forced(prompt);
  std::string text;
  for (int64_t k = 0; k < pattern.codebooks; ++k) {
    for (int64_t column = 0; column < pattern.columns; ++column) {
      const int64_t token = tokens[k][column].item<int64_t>();
      text += token == pattern.pad_token ? "P" : token < 0 ? "-" : std::to_string(token);
    }
    text += "\n";
  }
  return text;
}

at::Tensor no_prompt(int64_t codebooks) { return at::empty({codebooks, 0}, at::kLong); }

}  // namespace

TEST(DelayPattern, EachCodebookIsAColumnLate) {
  EXPECT_EQ(picture(pattern_of(7), no_prompt(4)),
            "P----PPP\n"
            "PP----PP\n"
            "PPP----P\n"
            "PPPP----\n");
}

TEST(DelayPattern, LengthsAreThoseOfTransformers) {
  EXPECT_EQ(pattern_of(1503).frames(), 1500);
  EXPECT_EQ(pattern_of(1500).frames(), 1497);
  EXPECT_EQ(pattern_of(1499).frames(), 1496);  // a whole length of 1500, as folders ask for
  EXPECT_EQ(pattern_of(1024).frames(), 1021);
  EXPECT_EQ(pattern_of(256).frames(), 253);
  EXPECT_EQ(pattern_of(1503, 8, 2).frames(), 1500);
}

TEST(DelayPattern, FewColumnsAreNotDelayed) {
  EXPECT_FALSE(pattern_of(5).applies());
  EXPECT_EQ(pattern_of(5).frames(), 5);
  EXPECT_TRUE(pattern_of(6).applies());
  EXPECT_EQ(pattern_of(6).frames(), 3);
  EXPECT_EQ(picture(pattern_of(5), no_prompt(4)), "P-----\nP-----\nP-----\nP-----\n");
  EXPECT_EQ(pattern_of(1).frames(), 1);
  EXPECT_EQ(pattern_of(1, 1).frames(), 1);
}

TEST(DelayPattern, SidesOfStereoTakeTurnsAndShareTheirDelay) {
  const DelayPattern stereo = pattern_of(7, 8, 2);
  for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(stereo.delay(k), k / 2) << k;
  EXPECT_EQ(picture(pattern_of(4, 4, 2), no_prompt(4)), "P---P\nP---P\nPP---\nPP---\n");
}

TEST(DelayPattern, APromptsTailIsForcedLater) {
  const at::Tensor prompt = at::tensor({1, 2, 3, 4, 5, 6, 7, 8}, at::kLong).view({4, 2});
  EXPECT_EQ(picture({.columns = 8}, prompt),
            "P12--PPP\n"
            "PP34--PP\n"
            "PPP56--P\n"
            "PPPP78--\n");
  EXPECT_EQ(picture({.columns = 5}, prompt), "P12--\nP34--\nP56--\nP78--\n");  // no delay
}

TEST(DelayPattern, WhatIsCutOffAPromptIsNotForced) {
  const at::Tensor prompt = at::arange(1, 25, at::kLong).remainder(9).view({4, 6});
  EXPECT_EQ(picture({.columns = 8}, prompt).substr(0, 9), "P1234PPP\n");
}

TEST(DelayPattern, CodesComeBackInStep) {
  for (const int64_t tokens : {5, 6, 12}) {
    const DelayPattern pattern = pattern_of(tokens);
    const at::Tensor codes = at::arange(2 * 4 * pattern.frames(), at::kLong).view({2, 4, -1});
    EXPECT_TRUE(at::equal(pattern.codes(pattern.forced(codes)), codes)) << tokens;
  }
}

TEST(DelayPattern, AnswersForAPlaceAsItsTableDoes) {
  const DelayPattern pattern = pattern_of(11, 8, 2);
  const at::Tensor tokens = pattern.forced(no_prompt(8));
  for (int64_t k = 0; k < 8; ++k)
    for (int64_t column = 0; column < pattern.columns; ++column)
      EXPECT_EQ(pattern.kept(k, column), tokens[k][column].item<int64_t>() == -1);
}

}  // namespace tandem
