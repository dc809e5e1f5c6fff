// Finds the numbers in a text and puts words in their place: thousands separators, amounts of
// money, decimals, ordinals, integers, in this order. For the languages of number_words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/currency.h"
#include "text/language_id.h"

namespace tandem {

// As coqui-tts 0.28 does, on lower-case text. Throws Error(data) where Coqui raises an exception,
// and for numbers of more than 18 digits.
std::u32string expand_numbers_as_coqui(std::u32string text, LanguageId language);

// As a reader says them, on text whose case is still as written: a capital letter tells the end of
// a sentence from an ordinal.
std::u32string expand_numbers(std::u32string text, LanguageId language);

// The scanners both use.
struct TextRange {
  size_t start, end;
};
// Numbers with `separator` between groups of three and a fraction after `point`. `loose`: any
// character may stand between groups, as in Coqui's pattern.
std::vector<TextRange> grouped_numbers(std::u32string_view text, char32_t separator, char32_t point,
                                       bool loose);
// Digits, points and commas beside `sign`, the sign included.
std::vector<TextRange> amounts(std::u32string_view text, char32_t sign);
// What follows the digits of an ordinal, in Coqui's order.
std::vector<std::u32string_view> ordinal_endings(LanguageId language);

inline char32_t sign_of(Currency currency) {
  return currency == Currency::pound ? U'£' : currency == Currency::dollar ? U'$' : U'€';
}

// The digits as a number; larger than largest_spoken_number when they do not fit.
int64_t integer_of(std::u32string_view digits);

}  // namespace tandem
