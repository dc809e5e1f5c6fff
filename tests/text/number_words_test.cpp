#include "text/number_words.h"

#include <gtest/gtest.h>

#include "text/currency.h"
#include "text/number_expand.h"

namespace tandem {
namespace {

TEST(NumberWords, AreThoseOfNum2words) {
  EXPECT_EQ(cardinal_words(LanguageId::en, 1'000'005), "one million and five");
  EXPECT_EQ(cardinal_words(LanguageId::fr, 80'281), "quatre-vingt mille deux cent quatre-vingt-un");
  EXPECT_EQ(cardinal_words(LanguageId::de, 101'000), "einhunderteinstausend");
  EXPECT_EQ(cardinal_words(LanguageId::pt, 1'114), "mil cento e catorze");
  EXPECT_EQ(cardinal_words(LanguageId::hu, 2'002), "kétezer-két");
  EXPECT_EQ(cardinal_words(LanguageId::ar, 2'000), "ألفا");
  EXPECT_EQ(cardinal_words(LanguageId::ko, 1'0001), "만 일");
}

TEST(NumberWords, MistakesAreInStyleCoquiOnly) {
  EXPECT_EQ(cardinal_words(LanguageId::it, 123), "centoventitre");
  EXPECT_EQ(cardinal_words(LanguageId::it, 123, CleanStyle::best), "centoventitré");
  EXPECT_EQ(cardinal_words(LanguageId::it, 1'118, CleanStyle::best), "millecentodiciotto");
  EXPECT_EQ(cardinal_words(LanguageId::tr, 661'021), "altıyüzaltmışbinyirmibir");
  EXPECT_EQ(cardinal_words(LanguageId::tr, 661'021, CleanStyle::best),
            "altıyüzaltmışbirbinyirmibir");
  EXPECT_EQ(cardinal_words(LanguageId::tr, (int64_t{1} << 53) + 1), "");
}

TEST(NumberWords, NegativesHaveTheWordForMinus) {
  EXPECT_EQ(cardinal_words(LanguageId::en, -5), "minus five");
  EXPECT_EQ(cardinal_words(LanguageId::tr, -5), "eksibeş");
  EXPECT_EQ(cardinal_words(LanguageId::ar, -5), "سالب خمسة");
  EXPECT_EQ(ordinal_words(LanguageId::en, -5), std::nullopt);
}

TEST(NumberWords, StopAtEighteenDigits) {
  EXPECT_TRUE(cardinal_words(LanguageId::en, largest_spoken_number).has_value());
  EXPECT_EQ(cardinal_words(LanguageId::en, largest_spoken_number + 1), std::nullopt);
  EXPECT_EQ(cardinal_words(LanguageId::en, -largest_spoken_number - 1), std::nullopt);
  EXPECT_EQ(ordinal_words(LanguageId::en, largest_spoken_number + 1), std::nullopt);
  EXPECT_EQ(decimal_words(LanguageId::en, 1e18), std::nullopt);
  EXPECT_EQ(currency_words(LanguageId::en, Currency::euro, 1e17), std::nullopt);
  EXPECT_EQ(spoken_currency(LanguageId::en, Currency::euro, 1e17), std::nullopt);
}

TEST(NumberWords, HaveNoneWhereNum2wordsRaises) {
  EXPECT_EQ(ordinal_words(LanguageId::cs, 5), std::nullopt);
  EXPECT_EQ(ordinal_words(LanguageId::pl, 0), std::nullopt);
  EXPECT_EQ(ordinal_words(LanguageId::pl, 120'000), std::nullopt);
  EXPECT_EQ(ordinal_words(LanguageId::ko, 100), std::nullopt);
  EXPECT_EQ(decimal_words(LanguageId::hu, 0.1234), std::nullopt);
  EXPECT_EQ(decimal_words(LanguageId::it, 1e-5), std::nullopt);
  EXPECT_EQ(decimal_words(LanguageId::en, 1e-320), std::nullopt);
  EXPECT_EQ(decimal_words(LanguageId::en, 1e-5), "zero point zero zero zero zero one");
  EXPECT_EQ(currency_words(LanguageId::cs, Currency::dollar, 5), std::nullopt);
  EXPECT_EQ(currency_words(LanguageId::tr, Currency::euro, 5), std::nullopt);
  EXPECT_EQ(cardinal_words(LanguageId::zh, 5), std::nullopt);
  EXPECT_EQ(decimal_words(LanguageId::hi, 5.5), std::nullopt);
}

TEST(NumberWords, HalvesOfACentAreRoundedUpAsTheDoubleIs) {
  EXPECT_EQ(currency_words(LanguageId::en, Currency::euro, 0.125), "zero euro, thirteen cents");
  EXPECT_EQ(currency_words(LanguageId::en, Currency::euro, 1.005), "one euro, zero cents");
}

std::string found(std::u32string_view text, bool loose) {
  std::string ranges;
  for (const TextRange& range :
       grouped_numbers(text, loose ? U'.' : U',', loose ? U',' : U'.', loose)) {
    ranges += std::to_string(range.start) + "-" + std::to_string(range.end) + " ";
  }
  return ranges;
}

TEST(NumberScan, DigitsThatDoNotFitAreTooLarge) {
  EXPECT_EQ(integer_of(U"999999999999999999"), largest_spoken_number);
  EXPECT_EQ(integer_of(U"0000000000000000000000012"), 12);
  EXPECT_GT(integer_of(U"1000000000000000000"), largest_spoken_number);
  EXPECT_GT(integer_of(U"9999999999999999999"), largest_spoken_number);
  EXPECT_GT(integer_of(std::u32string(5000, U'9')), largest_spoken_number);
}

TEST(NumberScan, FindsGroupsOfThree) {
  EXPECT_EQ(found(U"1,234,567.89", false), "0-12 ");
  EXPECT_EQ(found(U"1,2345", false), "0-1 ");
  EXPECT_EQ(found(U"x1,234", false), "3-6 ");
  EXPECT_EQ(found(U"1.234.5", true), "0-5 6-7 ");
  EXPECT_EQ(found(U"3.14159", true), "0-1 2-7 ");
  EXPECT_EQ(found(U"", true), "");
}

TEST(NumberScan, FindsAmountsBesideTheSign) {
  const auto count = [](std::u32string_view text) { return amounts(text, U'$').size(); };
  EXPECT_EQ(count(U"$5 and 5$"), 2u);
  EXPECT_EQ(count(U"$ 5, $., $"), 0u);
  EXPECT_EQ(count(U"$$5"), 1u);
  EXPECT_EQ(amounts(U"$5., x", U'$')[0].end, 2u);
}

}  // namespace
}  // namespace tandem
