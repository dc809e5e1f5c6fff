#include "text/number_words.h"

#include <unicode/rbnf.h>

#include <array>
#include <charconv>
#include <cmath>
#include <memory>

#include "tandem/error.h"
#include "text/number_rules.h"
#include "text/number_text.h"
#include "util/text.h"

namespace tandem {

namespace {

using Formatter = icu::RuleBasedNumberFormat;

std::unique_ptr<Formatter> make_formatter(LanguageId language) {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<Formatter> made;
  if (language == LanguageId::hi) {
    made = std::make_unique<Formatter>(icu::URBNF_SPELLOUT, icu::Locale("hi"), status);
  } else {
    const NumberRules rules = number_rules(language);
    if (rules.text == nullptr) {
      throw Error(ErrorKind::internal, "there are no number rules for this language.");
    }
    UParseError place;
    made = std::make_unique<Formatter>(icu::UnicodeString::fromUTF8(rules.text),
                                       icu::Locale(rules.plural), place, status);
  }
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::internal,
                std::string("ICU refuses the number rules: ") + u_errorName(status) + ".");
  }
  return made;
}

std::string format(LanguageId language, int64_t number, const char16_t* rule_set) {
  // ICU's formatters may not be shared by threads, and reading the rules costs far more than one
  // number.
  thread_local std::array<std::unique_ptr<Formatter>, language_count> formatters;
  std::unique_ptr<Formatter>& formatter = formatters[static_cast<size_t>(language)];
  if (!formatter) formatter = make_formatter(language);
  UErrorCode status = U_ZERO_ERROR;
  icu::UnicodeString words;
  icu::FieldPosition nowhere(icu::FieldPosition::DONT_CARE);
  formatter->format(number, icu::UnicodeString(rule_set), words, nowhere, status);
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::internal,
                std::string("ICU cannot say a number: ") + u_errorName(status) + ".");
  }
  std::string utf8;
  return words.toUTF8String(utf8);
}

// "centootto" is said "centotto"; only the last "e" between groups is said; a compound that ends
// in "tre" has an accent.
std::string italian(std::string words) {
  replace_all(words, "oo", "o");
  const size_t last = words.rfind(" e ");
  for (size_t at = words.find(" e "); at != last; at = words.find(" e ", at)) {
    words.replace(at, 3, ",  ");
  }
  replace_all(words, ",  ", ", ");
  return italian_accents(words);
}

// "mil e cento e catorze" is said "mil cento e catorze", "mil e cento" stays.
bool portuguese_drops_and(const std::string& words, const std::string& unit) {
  const std::string joint = unit + " e ";
  for (size_t at = words.find(joint); at != std::string::npos; at = words.find(joint, at + 1)) {
    const size_t word = at + joint.size();
    const size_t space = words.find(' ', word);
    if (space == std::string::npos) continue;
    const std::string hundreds = words.substr(word, space - word);
    if (!hundreds.ends_with("ento") && !hundreds.ends_with("entos")) continue;
    if (words.find('e', space) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::string portuguese_without_and(std::string words) {
  for (const char* unit :
       {"mil", "milhão", "milhões", "mil milhões", "bilião", "biliões", "mil biliões"}) {
    if (portuguese_drops_and(words, unit)) replace_all(words, std::string(unit) + " e", unit);
  }
  return words;
}

Words cardinal_words(LanguageId language, int64_t number, CleanStyle style) {
  if (number > largest_spoken_number || number < -largest_spoken_number) return std::nullopt;
  if (number < 0) {
    Words words = cardinal_words(language, -number, style);
    if (words) words = std::string(minus_word(language)) + *words;
    return words;
  }
  switch (language) {
    case LanguageId::ar: return trim(arabic_words(number, 0, {}));
    case LanguageId::it:
      if (style == CleanStyle::coqui) return italian_with_mistakes(number);
      return italian(format(language, number, u"%main"));
    case LanguageId::pt: return portuguese_without_and(format(language, number, u"%main"));
    case LanguageId::tr:
      if (style == CleanStyle::coqui) return turkish_with_mistakes(number, false);
      return format(language, number, u"%main");
    case LanguageId::hi: return format(language, number, u"%spellout-cardinal");
    case LanguageId::zh:
    case LanguageId::ja: return std::nullopt;
    default: return format(language, number, u"%main");
  }
}

std::string russian_feminine_words(int64_t number) {
  return format(LanguageId::ru, number, u"%feminine");
}

// With the space num2words puts after it: none in Turkish.
const char* minus_word(LanguageId language) {
  constexpr const char* table[language_count] = {
      "minus ", "menos ", "moins ", "minus ", "meno ",   "menos ",    "minus ", "eksi", "минус ",
      "min ",   "mínus ", "سالب ",  "",       "mínusz ", "마이너스 ", "",       "ऋण "};
  return table[static_cast<size_t>(language)];
}

int polish_plural(int64_t number) {
  if (number == 1) return 0;
  const int64_t unit = number % 10, teen = number % 100;
  return unit > 1 && unit < 5 && (teen < 10 || teen > 20) ? 1 : 2;
}

int russian_plural(int64_t number) {
  const int64_t unit = number % 10, teen = number % 100;
  if (teen >= 11 && teen <= 14) return 2;
  if (unit == 1) return 0;
  return unit >= 2 && unit <= 4 ? 1 : 2;
}

std::string shortest_digits(double number) {
  char digits[400];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed);
  return std::string(digits, end.ptr);
}

}  // namespace tandem
