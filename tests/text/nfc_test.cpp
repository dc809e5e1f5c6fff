#include <gtest/gtest.h>

#include "support/captured.h"
#include "text/clean.h"
#include "text/clean_characters.h"

namespace tandem {
namespace {

TEST(Nfc, ComposesLettersAndMarks) {
  EXPECT_EQ(to_nfc("Cafe\u0301"), "Caf\u00e9");
  EXPECT_EQ(to_nfc("\u1112\u1161\u11ab"), "\ud55c");  // jamo to a syllable
  EXPECT_EQ(to_nfc(""), "");
  EXPECT_EQ(to_nfc(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Nfc, NamesTheByteThatIsNoUtf8) {
  const Error error = error_of([] { to_nfc("caf\xe9 noir"); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_STREQ(error.what(), "the text is not UTF-8: byte 3 is 0xe9, which starts no character.");
}

TEST(Nfc, RefusesEveryKindOfWrongUtf8) {
  for (const char* wrong :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98", "a\xff"}) {
    EXPECT_EQ(error_of([&] { to_nfc(wrong); }).kind(), ErrorKind::data);
    EXPECT_EQ(error_of([&] { clean_text(wrong, "en"); }).kind(), ErrorKind::data);
    EXPECT_EQ(error_of([&] { split_text(wrong, "en", 10); }).kind(), ErrorKind::data);
  }
}

TEST(Utf8, EveryCodePointSurvives) {
  std::u32string all;
  for (char32_t c = 0; c <= 0x10ffff; c = c == 0xd7ff ? 0xe000 : c + 1) all.push_back(c);
  EXPECT_TRUE(decode_utf8(encode_utf8(all)) == all);
}

}  // namespace
}  // namespace tandem
