#include <gtest/gtest.h>

#include <random>

#include "support/captured.h"
#include "text/clean.h"
#include "text/clean_characters.h"

namespace tandem {
namespace {

using Pieces = std::vector<std::string>;

TEST(SplitText, PacksSentencesUpToTheLimit) {
  EXPECT_EQ(split_text("One two. Three four! Five?", "en", 100),
            Pieces{"One two. Three four! Five?"});
  EXPECT_EQ(split_text("One two. Three four! Five?", "en", 20),
            (Pieces{"One two. Three four!", "Five?"}));
  EXPECT_EQ(split_text("One two. Three four! Five?", "en", 19),
            (Pieces{"One two.", "Three four! Five?"}));
}

TEST(SplitText, KnowsAbbreviationsAndInitials) {
  EXPECT_EQ(split_text("Dr. Smith met J. Doe. They left.", "en", 22),
            (Pieces{"Dr. Smith met J. Doe.", "They left."}));
  EXPECT_EQ(split_text("Am 5. mai. Dann nicht.", "de", 12), (Pieces{"Am 5. mai.", "Dann nicht."}));
}

TEST(SplitText, KeepsDecimalsAndQuotesWhole) {
  EXPECT_EQ(split_text("It is 3.5. \"Really?\" Yes.", "en", 12),
            (Pieces{"It is 3.5.", "\"Really?\"", "Yes."}));
  EXPECT_EQ(split_text("Well... no. Yes", "en", 11), (Pieces{"Well... no.", "Yes"}));
}

TEST(SplitText, KnowsTheTerminatorsOfOtherScripts) {
  EXPECT_EQ(split_text("今天好。明天呢？后天！", "zh", 4),
            (Pieces{"今天好。", "明天呢？", "后天！"}));
  EXPECT_EQ(split_text("今天好。明天呢？后天！", "zh", 8), (Pieces{"今天好。明天呢？", "后天！"}));
  EXPECT_EQ(split_text("यह है। क्या? हाँ", "hi", 7), (Pieces{"यह है।", "क्या?", "हाँ"}));
  EXPECT_EQ(split_text("هل أنت؟ نعم", "ar", 8), (Pieces{"هل أنت؟", "نعم"}));
}

TEST(SplitText, CutsLongSentencesAtSpacesAndLongWordsAnywhere) {
  EXPECT_EQ(split_text("aaa bbb ccc ddd", "en", 7), (Pieces{"aaa bbb", "ccc ddd"}));
  EXPECT_EQ(split_text("aaaaaaaa bb", "en", 3), (Pieces{"aaa", "aaa", "aa", "bb"}));
}

TEST(SplitText, NothingGivesNothing) {
  EXPECT_TRUE(split_text("", "en", 10).empty());
  EXPECT_TRUE(split_text(" \n\t ", "en", 10).empty());
}

TEST(SplitText, RefusesALimitBelowOne) {
  const Error error = error_of([] { split_text("a", "en", 0); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_STREQ(error.what(),
               "a text cannot be split into pieces of 0 characters: at least 1 is needed.");
}

std::u32string without_spaces(std::u32string text) {
  std::erase_if(text, [](char32_t c) { return is_python_space(c); });
  return text;
}

TEST(SplitText, LosesNothingAndKeepsTheLimit) {
  constexpr std::u32string_view alphabet = U"ab Zé.!?…。！？।؟ \n\t\u00a0\"')」5,다字 .Dr ";
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::u32string text;
    const size_t length = random() % 120;
    for (size_t i = 0; i < length; ++i) text.push_back(alphabet[random() % alphabet.size()]);
    const int limit = 1 + static_cast<int>(random() % 40);
    const Language& language = languages()[random() % languages().size()];
    std::u32string joined;
    for (const std::string& piece : split_text(encode_utf8(text), language.code, limit)) {
      const std::u32string points = decode_utf8(piece);
      EXPECT_FALSE(points.empty());
      EXPECT_LE(points.size(), static_cast<size_t>(limit));
      joined += points;
    }
    ASSERT_TRUE(without_spaces(joined) == without_spaces(text)) << encode_utf8(text);
  }
}

}  // namespace
}  // namespace tandem
