#include <charconv>
#include <optional>

#include "tandem/error.h"
#include "text/clean_characters.h"
#include "text/number_expand.h"

namespace tandem {

namespace {

[[noreturn]] void fail(std::u32string_view what, LanguageId language, const char* why) {
  throw Error(ErrorKind::data,
              "Coqui's cleaner has no words for `" + encode_utf8(what.substr(0, 40)) + "` in `" +
                  languages()[static_cast<size_t>(language)].code + "`: " + why + ".")
      .hint("write the number in words, or clean in the style `best`");
}

constexpr const char* too_long = "it has more than 18 digits";

// A Python float; nothing where float() raises.
std::optional<double> float_of(std::u32string_view written) {
  std::string text;
  for (const char32_t c : written) {
    if (is_ascii_digit(c)) text.push_back(static_cast<char>(c));
    if (c == U'.' || c == U',') text.push_back('.');
  }
  if (text.find('.') != text.rfind('.')) return std::nullopt;
  double number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec == std::errc::result_out_of_range) return 1e300;
  return number;
}

std::u32string without_separators(const std::u32string& text, LanguageId language) {
  const bool comma = language == LanguageId::en || language == LanguageId::ru;
  const char32_t separator = comma ? U',' : U'.';
  if (text.find(separator) == std::u32string::npos) return text;
  std::u32string result;
  size_t copied = 0;
  for (const auto& [start, end] : grouped_numbers(text, separator, comma ? U'.' : U',', !comma)) {
    result.append(text, copied, start - copied);
    for (size_t at = start; at < end; ++at) {
      if (text[at] != separator) result.push_back(text[at]);
    }
    copied = end;
  }
  return result.append(text, copied);
}

// Coqui cuts a whole amount at the last of these to be rid of "zero cents".
std::string_view joint(LanguageId language) {
  switch (language) {
    case LanguageId::es: return " con ";
    case LanguageId::fr: return " et ";
    case LanguageId::de: return " und ";
    case LanguageId::pt:
    case LanguageId::it: return " e ";
    default: return ", ";
  }
}

// Nothing where num2words raises: Coqui then leaves this and the currencies after it.
std::optional<std::u32string> with_amounts(const std::u32string& text, LanguageId language,
                                           Currency currency) {
  std::u32string result;
  size_t copied = 0;
  for (const auto& [start, end] : amounts(text, sign_of(currency))) {
    const std::u32string_view written = std::u32string_view(text).substr(start, end - start);
    const std::optional<double> amount = float_of(written);
    if (!amount) return std::nullopt;
    if (*amount >= largest_amount) fail(written, language, "it is too large");
    Words words = currency_words(language, currency, *amount);
    if (!words) return std::nullopt;
    if (*amount == static_cast<double>(static_cast<int64_t>(*amount))) {
      words->erase(std::min(words->rfind(joint(language)), words->size()));
    }
    result.append(text, copied, start - copied).append(decode_utf8(*words));
    copied = end;
  }
  return result.append(text, copied);
}

std::u32string with_decimals(const std::u32string& text, LanguageId language) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (is_ascii_digit(at_or_end(text, end))) ++end;
    const char32_t point = at_or_end(text, end);
    const bool decimal =
        end > at && (point == U'.' || point == U',') && is_ascii_digit(at_or_end(text, end + 1));
    if (!decimal) {
      end = std::max(end, at + 1);
      result.append(text, at, end - at);
      at = end;
      continue;
    }
    ++end;
    while (is_ascii_digit(at_or_end(text, end))) ++end;
    const std::u32string_view written = std::u32string_view(text).substr(at, end - at);
    const double number = *float_of(written);
    if (number >= 1e18) fail(written, language, too_long);
    const Words words = decimal_words(language, number);
    if (!words) fail(written, language, "num2words fails for this decimal");
    result += decode_utf8(*words);
    at = end;
  }
  return result;
}

size_t ordinal_ending(std::u32string_view text, size_t at, LanguageId language) {
  for (const std::u32string_view ending : ordinal_endings(language)) {
    if (text.substr(at, ending.size()) != ending) continue;
    const bool before_space =
        ending == U"." && (language == LanguageId::de || language == LanguageId::cs);
    const size_t end = at + ending.size();
    if (before_space && end < text.size() && !is_python_space(text[end])) continue;
    return ending.size();
  }
  return 0;
}

// One pass for ordinals and one for what is left would give the same: an ordinal's words hold no
// digits.
std::u32string with_integers(const std::u32string& text, LanguageId language) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (is_ascii_digit(at_or_end(text, end))) ++end;
    if (end == at) {
      result.push_back(text[at++]);
      continue;
    }
    const size_t ending = ordinal_ending(text, end, language);
    const std::u32string_view written = std::u32string_view(text).substr(at, end + ending - at);
    const int64_t number = integer_of(std::u32string_view(text).substr(at, end - at));
    if (number > largest_spoken_number) fail(written, language, too_long);
    const Words words =
        ending > 0 ? ordinal_words(language, number) : cardinal_words(language, number);
    if (!words) fail(written, language, "num2words fails for this ordinal");
    result += decode_utf8(*words);
    at = end + ending;
  }
  return result;
}

}  // namespace

std::u32string expand_numbers_as_coqui(std::u32string text, LanguageId language) {
  bool any_digit = false;
  for (const char32_t c : text) any_digit = any_digit || is_decimal_digit(c);
  if (!any_digit) return text;
  text = without_separators(text, language);
  for (const Currency currency : {Currency::pound, Currency::dollar, Currency::euro}) {
    std::optional<std::u32string> replaced = with_amounts(text, language, currency);
    if (!replaced) break;
    text = std::move(*replaced);
  }
  if (language == LanguageId::hi) {
    for (size_t at = 0; at < text.size(); ++at) {
      if (is_ascii_digit(text[at])) {
        fail(std::u32string_view(text).substr(at, 1), language, "num2words does not know Hindi");
      }
    }
  }
  if (language != LanguageId::tr) text = with_decimals(text, language);
  return with_integers(text, language);
}

}  // namespace tandem
