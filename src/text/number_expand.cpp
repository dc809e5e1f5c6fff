#include "text/number_expand.h"

#include <unicode/uchar.h>

#include <charconv>

#include "text/clean_characters.h"
#include "text/number_ordinal.h"

namespace tandem {

namespace {

bool thousands_by_comma(LanguageId language) {
  return language == LanguageId::en || language == LanguageId::hi || language == LanguageId::ko ||
         language == LanguageId::ar;
}

// Digits of any script in ASCII; the Arabic decimal and thousands signs as the language's own.
void unify_digits(std::u32string& text, LanguageId language) {
  const char32_t point = thousands_by_comma(language) ? U'.' : U',';
  for (char32_t& c : text) {
    if (c < 0x80) continue;
    if (is_decimal_digit(c)) {
      c = U'0' + static_cast<char32_t>(u_charDigitValue(static_cast<UChar32>(c)));
    } else if (c == U'٫') {
      c = point;
    } else if (c == U'٬') {
      c = point == U'.' ? U',' : U'.';
    }
  }
}

bool digit_at(std::u32string_view text, size_t at) { return is_ascii_digit(at_or_end(text, at)); }

// Whether text[at] separates thousands: three digits follow it and no fourth, and the language
// writes thousands so. Narrow and no-break spaces always do; Hindi has groups of two as well.
bool separates_thousands(std::u32string_view text, size_t at, LanguageId language) {
  const char32_t c = text[at];
  const bool narrow = c == 0xa0 || c == 0x202f || c == 0x2009;
  if (!narrow && c != (thousands_by_comma(language) ? U',' : U'.')) return false;
  if (!narrow && language == LanguageId::ru) return false;
  size_t before = at, digits = 0;
  while (before > 0 && is_ascii_digit(text[before - 1])) --before;
  while (digit_at(text, at + 1 + digits)) ++digits;
  if (before == at || at - before > 3) return false;
  if (digits == 3) return true;
  return language == LanguageId::hi && digits == 2 && at_or_end(text, at + 3) == U',' &&
         digit_at(text, at + 4);
}

std::u32string without_separators(std::u32string_view text, LanguageId language) {
  std::u32string result;
  for (size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && is_ascii_digit(text[at - 1]) && separates_thousands(text, at, language)) continue;
    result.push_back(text[at]);
  }
  return result;
}

double amount_of(std::u32string_view written) {
  std::string text;
  for (const char32_t c : written) {
    if (is_ascii_digit(c)) text.push_back(static_cast<char>(c));
    if (c == U'.' || c == U',') text.push_back('.');
  }
  if (text.find('.') != text.rfind('.')) return -1;
  double number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "5 €" is written with a space in many languages.
std::u32string sign_without_space(std::u32string_view text, char32_t sign) {
  std::u32string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool between = is_python_space(text[at]) && at > 0 && is_ascii_digit(text[at - 1]) &&
                         at_or_end(text, at + 1) == sign && !digit_at(text, at + 2);
    if (!between) result.push_back(text[at]);
  }
  return result;
}

std::u32string with_amounts(std::u32string text, LanguageId language) {
  for (const Currency currency : {Currency::pound, Currency::dollar, Currency::euro}) {
    const char32_t sign = sign_of(currency);
    if (text.find(sign) == std::u32string::npos) continue;
    text = sign_without_space(text, sign);
    std::u32string result;
    size_t copied = 0;
    for (auto [start, end] : amounts(text, sign)) {
      // A comma or full stop before the digits belongs to the words before.
      while (text[start] == U'.' || text[start] == U',') ++start;
      const double amount = amount_of(std::u32string_view(text).substr(start, end - start));
      const Words words = amount < 0 ? Words() : spoken_currency(language, currency, amount);
      if (!words) continue;
      result.append(text, copied, start - copied);
      if (!result.empty() && is_python_word(result.back())) result.push_back(U' ');
      result.append(decode_utf8(*words));
      if (end < text.size() && is_python_word(text[end])) result.push_back(U' ');
      copied = end;
    }
    text = result.append(text, copied);
  }
  return text;
}

// Feminine, neuter and genitive by the ending after the hyphen.
void russian_gender(std::string& words, std::u32string_view ending) {
  const auto change = [&](std::string_view masculine, const char* stem_vowel) {
    if (!words.ends_with(masculine)) return false;
    words.erase(words.size() - masculine.size());
    const bool soft = masculine == "ий";
    words += stem_vowel;
    if (ending == U"-я") words += soft ? "я" : "ая";
    if (ending == U"-е" || ending == U"-ое" || ending == U"-ье") words += soft ? "е" : "ое";
    if (ending == U"-го") words += soft ? "его" : "ого";
    return true;
  };
  if (ending == U"-й") return;
  if (!change("ий", "ь") && !change("ый", "")) change("ой", "");
}

// The ending of an ordinal that stands at `at`, or 0. A full stop makes an ordinal only where the
// sentence goes on.
size_t ordinal_ending(std::u32string_view text, size_t at, LanguageId language) {
  for (const std::u32string_view ending : ordinal_endings(language)) {
    if (to_lower(text.substr(at, ending.size())) != ending) continue;
    const size_t end = at + ending.size();
    if (ending == U"°") continue;  // degrees
    if (ending != U".") {
      const bool whole = !is_python_word(at_or_end(text, end)) || language == LanguageId::ko;
      if (whole) return ending.size();
      continue;
    }
    size_t next = end;
    while (next < text.size() && is_python_space(text[next])) ++next;
    if (next == end || next == text.size()) continue;
    // German nouns have capitals, so they say nothing about where a sentence starts.
    const bool goes_on =
        language == LanguageId::de ? is_python_word(text[next]) : is_lower(text[next]);
    if (goes_on) return 1;
  }
  return 0;
}

Words spoken_ordinal(LanguageId language, int64_t number, std::u32string_view ending) {
  if (language == LanguageId::cs) return czech_ordinal(number);
  Words words = ordinal_words(language, number, CleanStyle::best);
  if (words && language == LanguageId::ru) russian_gender(*words, ending);
  if (!words && language == LanguageId::ko) {
    words = *cardinal_words(language, number, CleanStyle::best) + " 번째";
  }
  return words;
}

// A letter right after the number is apart ("5 kg") unless it may be a suffix of the number.
bool space_before(char32_t next, LanguageId language) {
  const bool suffixes =
      language == LanguageId::hi || language == LanguageId::ko || language == LanguageId::ar;
  return is_python_word(next) && (!suffixes || next < 0x80);
}

bool is_minus(std::u32string_view text, size_t at) {
  if (text[at] != U'-' && text[at] != U'−') return false;
  if (!digit_at(text, at + 1)) return false;
  return at == 0 || is_python_space(text[at - 1]) || text[at - 1] == U'(';
}

struct Spoken {
  Words words;
  size_t end;
};

// The number that starts at `at`.
Spoken spoken_number(std::u32string_view text, size_t at, LanguageId language) {
  size_t end = at;
  while (digit_at(text, end)) ++end;
  const std::string whole = encode_utf8(text.substr(at, end - at));
  const auto is_point = [](char32_t c) { return c == U'.' || c == U','; };
  // "1.2.3" and "12.05.2024" are no decimals.
  const bool after_point = at > 1 && is_point(text[at - 1]) && is_ascii_digit(text[at - 2]);
  if (is_point(at_or_end(text, end)) && digit_at(text, end + 1) && !after_point) {
    size_t last = end + 1;
    while (digit_at(text, last)) ++last;
    const bool goes_on = is_point(at_or_end(text, last)) && digit_at(text, last + 1);
    if (!goes_on) {
      const std::string fraction = encode_utf8(text.substr(end + 1, last - end - 1));
      return {written_decimal_words(language, whole, fraction), last};
    }
  }
  const int64_t number = integer_of(text.substr(at, end - at));
  if (number <= largest_spoken_number) {
    if (const size_t ending = ordinal_ending(text, end, language); ending > 0) {
      const Words words = spoken_ordinal(language, number, text.substr(end, ending));
      if (words && !words->empty()) return {words, end + ending};
    }
    const bool by_digits = whole.size() > 1 && whole[0] == '0';
    if (!by_digits) return {cardinal_words(language, number, CleanStyle::best), end};
  }
  return {digit_words(language, whole), end};
}

std::u32string with_numbers(std::u32string_view text, LanguageId language) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    if (is_minus(text, at)) {
      result += decode_utf8(minus_word(language));
      if (result.back() != U' ') result.push_back(U' ');
      ++at;
      continue;
    }
    if (!is_ascii_digit(text[at])) {
      result.push_back(text[at++]);
      continue;
    }
    const Spoken spoken = spoken_number(text, at, language);
    if (!result.empty() && space_before(result.back(), language)) result.push_back(U' ');
    const std::string written = encode_utf8(text.substr(at, spoken.end - at));
    result += decode_utf8(spoken.words.value_or(written));
    at = spoken.end;
    if (at < text.size() && space_before(text[at], language)) result.push_back(U' ');
  }
  return result;
}

}  // namespace

std::u32string expand_numbers(std::u32string text, LanguageId language) {
  unify_digits(text, language);
  bool any_digit = false;
  for (const char32_t c : text) any_digit = any_digit || is_ascii_digit(c);
  if (!any_digit) return text;
  text = without_separators(text, language);
  text = with_amounts(std::move(text), language);
  return with_numbers(text, language);
}

}  // namespace tandem
