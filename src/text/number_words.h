// Numbers in words, as num2words 0.5.14 says them; in style coqui its mistakes are included.
// Nothing is returned where num2words raises an exception or the number has more than 18 digits.
// Hindi, which num2words does not know, is ICU's own; Chinese and Japanese are not handled here.
// Safe in any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/clean.h"
#include "text/language_id.h"

namespace tandem {

inline constexpr int64_t largest_spoken_number = 999'999'999'999'999'999;

using Words = std::optional<std::string>;

Words cardinal_words(LanguageId language, int64_t number, CleanStyle style = CleanStyle::coqui);
Words ordinal_words(LanguageId language, int64_t number, CleanStyle style = CleanStyle::coqui);
// A number read as a Python float: "2.50" is two point five. Turkish and Hindi have none.
Words decimal_words(LanguageId language, double number);

// The decimal as it is written, zeros included: what a reader says. `whole` and `fraction` are
// digits.
Words written_decimal_words(LanguageId language, std::string_view whole, std::string_view fraction);
// Digit by digit, for what is too long to be said as a number.
std::string digit_words(LanguageId language, std::string_view digits);

// The word for "minus".
const char* minus_word(LanguageId language);

// What num2words says wrongly: Italian accents and "centodicotto", Turkish digits left out.
std::string italian_with_mistakes(int64_t number);
std::string italian_accents(const std::string& words);
// In ordinals other digits are lost: the words before the ordinal ending is put on.
std::string turkish_with_mistakes(int64_t number, bool ordinal);
// Leaves the "e" out of "mil e cento e catorze", as num2words does in whole phrases.
std::string portuguese_without_and(std::string words);

// 0 for one, 1 for two to four, 2 for more: the plural forms of Polish, which num2words gives
// Czech too, and of Russian.
int polish_plural(int64_t number);
int russian_plural(int64_t number);

// The feminine cardinal of Russian.
std::string russian_feminine_words(int64_t number);

// Arabic: a whole number, hundredths (0 to 99) and the forms of a currency: one, two, few, many.
struct ArabicUnits {
  const char* unit[4] = {"", "", "", ""};
  const char* part[4] = {"", "", "", ""};
  const char* separator = ",";
  bool feminine = false;
};
std::string arabic_words(int64_t whole, int hundredths, const ArabicUnits& units);
// How num2words cuts a float into the two arguments above.
std::pair<int64_t, int> arabic_parts(double number);

// The shortest digits that read back as the same double, never with an exponent: "0.1", "100".
std::string shortest_digits(double number);

}  // namespace tandem
