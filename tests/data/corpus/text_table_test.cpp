#include "data/corpus/text_table.h"

#include <gtest/gtest.h>

#include "support/captured.h"
#include "support/temporary_folder.h"

namespace tandem {
namespace {

std::vector<std::vector<std::string>> rows(const std::string& text, char separator) {
  const TextTable table = check_table(text, "t");
  Records records(table, separator);
  Record record;
  std::vector<std::vector<std::string>> out;
  while (records.next(record)) out.push_back(record.fields);
  return out;
}
using Rows2 = std::vector<std::vector<std::string>>;

TEST(TextTable, DropsTheByteOrderMarkAndReadsBothLineEnds) {
  EXPECT_EQ(rows("\xEF\xBB\xBF"
                 "a|b\r\nc|d\ne|f",
                 '|'),
            (Rows2{{"a", "b"}, {"c", "d"}, {"e", "f"}}));
}

TEST(TextTable, KeepsSeparatorsAndLineEndsInQuotes) {
  EXPECT_EQ(rows("a,\"b, \"\"c\"\"\nd\",e\n\nf,g,h\n", ','),
            (Rows2{{"a", "b, \"c\"\nd", "e"}, {"f", "g", "h"}}));
}

TEST(TextTable, CountsLinesThroughQuotesAndEmptyLines) {
  const TextTable table = check_table("\n\na,\"b\nc\"\nd,e\n", "t");
  Records records(table, ',');
  Record record;
  ASSERT_TRUE(records.next(record));
  EXPECT_EQ(record.line, 3);
  ASSERT_TRUE(records.next(record));
  EXPECT_EQ(record.line, 5);
}

TEST(TextTable, HasNoQuotesBetweenBars) {
  EXPECT_EQ(rows("a|\"Stop\n", '|'), (Rows2{{"a", "\"Stop"}}));
}

TEST(TextTable, KeepsEmptyFields) {
  EXPECT_EQ(rows("a\t\tb\t\n", '\t'), (Rows2{{"a", "", "b", ""}}));
}

TEST(TextTable, NamesTheByteOfWindows1252AndHowToConvertIt) {
  const TestFolder folder;
  const std::string path = folder.write("metadata.csv", "a|caf\xC3\xA9\nb|caf\xE9 noir\n");
  const Error error = error_of([&] { load_table(path); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.what(), path +
                              ":2: byte 6 of the line, 0xE9, is not UTF-8; the text looks like "
                              "Windows-1252");
  EXPECT_EQ(error.hint(),
            "convert it: iconv -f WINDOWS-1252 -t UTF-8 \"" + path + "\" > \"" + path + ".utf8\"");
}

TEST(TextTable, RefusesWhatIsNoUtf8) {
  for (const std::string bad : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80",
                                "\xF8\x88\x80\x80\x80", "\xE0\x80\xAF", "\xF0\x80\x80\xAF"}) {
    EXPECT_EQ(find_bad_utf8("ab" + bad), 2u) << testing::PrintToString(bad);
  }
  EXPECT_EQ(find_bad_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), std::string::npos);
}

TEST(TextTable, NamesUtf16) {
  const Error error = error_of([] {
    check_table(
        "\xFF\xFE"
        "a",
        "t.csv");
  });
  EXPECT_STREQ(error.what(), "t.csv:1: the text is UTF-16; expected UTF-8");
}

TEST(TextTable, NamesTheLineOfANul) {
  const Error error = error_of([] { check_table(std::string("a|b\nc\0d", 7), "t"); });
  EXPECT_STREQ(error.what(), "t:2: byte 2 of the line is NUL; expected UTF-8 text");
}

TEST(TextTable, NamesALineThatIsTooLong) {
  const TextTable table = check_table("a|b\n" + std::string(longest_line + 1, 'x'), "t");
  const auto read_lines = [&] {
    Lines lines(table);
    Line line;
    while (lines.next(line)) {
    }
  };
  const std::string sentence =
      "t:2: the line is longer than 1048576 bytes; expected one clip a line";
  EXPECT_EQ(error_of(read_lines).what(), sentence);
  EXPECT_EQ(error_of([&] { rows(table.text, ','); }).what(), sentence);
  EXPECT_EQ(error_of([&] { rows("a\n\"" + std::string(longest_line + 1, 'x'), ','); }).what(),
            sentence);
}

TEST(TextTable, NamesTheLineOfAQuoteThatNeverEnds) {
  const Error error = error_of([] { rows("a,b\nc,\"d\ne,f\n", ','); });
  EXPECT_STREQ(error.what(), "t:2: a quote opens here and never closes");
}

TEST(TextTable, NamesAMissingFile) {
  EXPECT_EQ(error_of([] { load_table("/nowhere/t.csv"); }).kind(), ErrorKind::io);
}

}  // namespace
}  // namespace tandem
