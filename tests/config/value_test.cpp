#include "config/value.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

namespace tandem {

TEST(ValueParsing, Words) {
  for (const char* yes : {"true", "True", "yes", "on", "ON"})
    EXPECT_EQ(parse_value(yes), Value(true));
  for (const char* no : {"false", "FALSE", "no", "off"}) EXPECT_EQ(parse_value(no), Value(false));
  for (const char* null : {"null", "Null", "~"}) EXPECT_TRUE(parse_value(null).is_null());
  EXPECT_EQ(parse_value("truest"), Value("truest"));
}

TEST(ValueParsing, Numbers) {
  EXPECT_EQ(parse_value("16"), Value(16));
  EXPECT_EQ(parse_value("-3"), Value(-3));
  EXPECT_EQ(parse_value("+3"), Value(3));
  EXPECT_EQ(parse_value("1e-4"), Value(1e-4));
  EXPECT_EQ(parse_value(".5"), Value(0.5));
  EXPECT_EQ(parse_value("16.0"), Value(16.0));
  EXPECT_EQ(parse_value("9223372036854775807"), Value(int64_t{9223372036854775807}));
  EXPECT_EQ(parse_value("9223372036854775808"), Value(9223372036854775808.0));
}

TEST(ValueParsing, WhatOnlyLooksLikeANumberIsText) {
  for (const char* text : {"nan", "inf", "0x10", "1e", "1_000", "+-3", ".", "-", "1.2.3", "1e999"})
    EXPECT_EQ(parse_value(text), Value(text));
}

TEST(ValueParsing, QuotedTextStaysText) {
  EXPECT_EQ(parse_value("\"16\""), Value("16"));
  EXPECT_EQ(parse_value("'true'"), Value("true"));
  EXPECT_EQ(parse_value("'it''s'"), Value("it's"));
  EXPECT_EQ(parse_value(R"("a\n\"b\"\\\x01")"), Value("a\n\"b\"\\\x01"));
}

TEST(ValueParsing, Lists) {
  EXPECT_EQ(parse_value("[0, 1]"), Value(Value::List{0, 1}));
  EXPECT_EQ(parse_value("[]"), Value(Value::List{}));
  EXPECT_EQ(parse_value("[a, \"b, c\", [1, it's], ]"),
            Value(Value::List{"a", "b, c", Value::List{1, "it's"}}));
}

TEST(ValueParsing, TheMalformedIsPlainText) {
  for (const char* text : {"[0, 1", "[mix] data", "[a,, b]", "[a]]", "'open", "\"open", "\"\\q\"",
                           "\"\\xff\"", "[\"open]", "\"a\"b", "\"\\x-1\""})
    EXPECT_EQ(parse_value(text), Value(text));
}

TEST(ValueParsing, DeepListsDoNotRecurseWithoutEnd) {
  const std::string bomb = std::string(50000, '[') + std::string(50000, ']');
  EXPECT_NE(parse_value(bomb).as<Value::List>(), nullptr);
}

TEST(ValueParsing, RemembersTheSpelling) {
  EXPECT_EQ(parse_value("007").spelling(), "007");
  EXPECT_EQ(parse_value("1e3").spelling(), "1e3");
  EXPECT_EQ(parse_value("'007'").spelling(), "007");
  EXPECT_EQ(parse_value("007"), Value(7));
}

TEST(ValueFormatting, ReadsBackTheSame) {
  const std::vector<Value> values = {
      Value(),
      true,
      false,
      0,
      -5,
      60.0,
      1e-4,
      1e300,
      -0.1,
      "",
      "plain",
      "true",
      "1e-4",
      "0,1",
      "~",
      "null",
      "a: b # c",
      " edge ",
      "say \"hi\" \\n",
      "tab\t\n\r",
      "it's",
      "[x]",
      "größe/音楽",
      "-x",
      "\x7f\x01",
      "...",
      Value::List{1, "1", 2.0, Value(), "a, b", Value::List{true}},
  };
  for (const Value& value : values)
    EXPECT_EQ(parse_value(format_value(value)), value) << format_value(value);
}

TEST(ValueFormatting, RandomNumbersReadBackToTheBit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t bits = random();
    const auto number = std::bit_cast<double>(bits);
    if (number != number) continue;
    EXPECT_EQ(parse_value(format_value(number)), Value(number)) << format_value(number);
  }
}

TEST(ValueFormatting, NumbersThatAreNotFinite) {
  EXPECT_EQ(format_value(parse_value(".inf")), ".inf");
  EXPECT_EQ(format_value(parse_value("-.inf")), "-.inf");
  EXPECT_EQ(format_value(parse_value(".nan")), ".nan");
}

TEST(Text, Utf8) {
  EXPECT_TRUE(is_plain_utf8("größe 音楽 🎯"));
  for (const std::string bad :
       {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\x80"})
    EXPECT_FALSE(is_plain_utf8(bad)) << shown(bad);
  EXPECT_FALSE(is_plain_utf8(std::string("a\0b", 3)));
}

TEST(Text, ShownIsOneShortLine) {
  EXPECT_EQ(shown("a\nb\xff"), "a\\x0ab\\xff");
  EXPECT_LT(shown(std::string(100000, 'x')).size(), 120u);
}

}  // namespace tandem
