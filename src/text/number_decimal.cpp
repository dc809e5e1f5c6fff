// Decimals in words. num2words has three ways: digit by digit, the fraction as one number (Polish,
// Czech), and the fraction as so many tenths or hundredths (Russian, Hungarian).
#include <charconv>
#include <cmath>

#include "text/number_words.h"
#include "util/text.h"

namespace tandem {

namespace {

int64_t to_integer(std::string_view digits) {
  int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return result.ec == std::errc{} ? value : largest_spoken_number + 1;
}

const char* point_word(LanguageId language) {
  constexpr const char* table[language_count] = {
      "point", "punto", "virgule", "Komma", "virgola", "vírgula", "przecinek", "virgül", "",
      "komma", "celá",  "فاصلة",   "",      "egész",   "점",      "",          "दशमलव"};
  return table[static_cast<size_t>(language)];
}

bool is_whole(double number) { return std::floor(number) == number; }

// The digits num2words reads after the point. It multiplies in floating point, so a long fraction
// may end in another digit than the one written, and one of hundreds of places fails.
std::optional<std::string> fraction_read_by_digits(double number) {
  const std::string shortest = shortest_digits(number);
  const size_t precision = shortest.size() - shortest.find('.') - 1;
  if (precision > 308) return std::nullopt;
  double scaled = std::abs(number - std::trunc(number));
  scaled *= std::pow(10.0, static_cast<double>(precision));
  const double rounded = std::nearbyint(scaled);
  const double kept = std::abs(rounded - scaled) < 0.01 ? rounded : std::floor(scaled);
  if (!(kept < 9e18)) return std::nullopt;
  std::string digits = std::to_string(static_cast<int64_t>(kept));
  if (digits.size() < precision) digits.insert(0, precision - digits.size(), '0');
  return digits.substr(0, precision);
}

// "zero zero pięć": zeros one by one, then the rest as a number.
Words fraction_as_number(LanguageId language, std::string_view fraction, bool zero_twice) {
  const size_t zeros = std::min(fraction.find_first_not_of('0'), fraction.size());
  const std::string zero = *cardinal_words(language, 0);
  std::string words;
  for (size_t i = 0; i < zeros; ++i) words += (words.empty() ? "" : " ") + zero;
  if (zeros == fraction.size() && !zero_twice) return words;
  const Words rest =
      cardinal_words(language, zeros == fraction.size() ? 0 : to_integer(fraction.substr(zeros)));
  if (!rest) return rest;
  return words.empty() ? *rest : words + " " + *rest;
}

// "десятых", "сотых", "десятитысячных": what so many digits after the point count.
std::string russian_places(std::string_view fraction) {
  constexpr const char* stems[] = {"",          "тысячн",       "миллионн",    "миллиардн",
                                   "триллионн", "квадриллионн", "квинтиллионн"};
  const bool one = fraction.ends_with("1") && !fraction.ends_with("11");
  const size_t places = fraction.size();
  std::string word;
  if (places < 3) {
    word = places == 1 ? "десят" : "сот";
  } else {
    constexpr const char* prefixes[] = {"", "десяти", "сто"};
    word = std::string(prefixes[places % 3]) + stems[std::min<size_t>(places / 3, 6)];
  }
  return word + (one ? "ая" : "ых");
}

Words russian_decimal(std::string_view whole, std::string_view fraction) {
  const int64_t left = to_integer(whole), right = to_integer(fraction);
  if (std::max(left, right) > largest_spoken_number) return std::nullopt;
  return russian_feminine_words(left) + (russian_plural(left) == 0 ? " целая " : " целых ") +
         russian_feminine_words(right) + " " + russian_places(fraction);
}

Words hungarian_decimal(std::string_view whole, std::string_view fraction) {
  constexpr const char* places[] = {"", "tized", "század", "ezred"};
  const Words left = cardinal_words(LanguageId::hu, to_integer(whole));
  if (!left || fraction.size() > 3) return std::nullopt;
  return *left + " egész " + *cardinal_words(LanguageId::hu, to_integer(fraction)) + " " +
         places[fraction.size()];
}

// num2words counts the digits of a whole float with its ".0" and never ends for most.
bool hungarian_whole_fails(int64_t number) {
  for (int64_t rest = number; rest >= 1'000'000;) {
    const size_t length = std::to_string(rest).size();
    if (length % 3 != 1) return true;
    int64_t unit = 1;
    for (size_t i = 1; i < length; ++i) unit *= 10;
    rest %= unit;
  }
  return false;
}

}  // namespace

std::string digit_words(LanguageId language, std::string_view digits) {
  std::string words;
  for (const char digit : digits) {
    if (!words.empty()) words += ' ';
    words += cardinal_words(language, digit - '0').value_or(std::string(1, digit));
  }
  return words;
}

Words decimal_words(LanguageId language, double number) {
  if (!(number < static_cast<double>(largest_spoken_number))) return std::nullopt;
  const auto whole = static_cast<int64_t>(number);
  std::string fraction = "0";
  const std::string shortest = shortest_digits(number);
  if (const size_t point = shortest.find('.'); point != std::string::npos) {
    fraction = shortest.substr(point + 1);
  }
  // Python writes these with an exponent, which the languages that read the text stumble over.
  const bool has_exponent = number >= 1e16 || (number > 0 && number < 1e-4);
  switch (language) {
    case LanguageId::it:
      if (has_exponent) return std::nullopt;
      return italian_accents(*cardinal_words(language, whole) + " virgola " +
                             digit_words(language, fraction));
    case LanguageId::pl:
    case LanguageId::cs: {
      if (has_exponent) return std::nullopt;
      const Words rest = fraction_as_number(language, fraction, true);
      if (!rest) return rest;
      return *cardinal_words(language, whole) + " " + point_word(language) + " " + *rest;
    }
    case LanguageId::ru:
      if (has_exponent) return std::nullopt;
      return russian_decimal(std::to_string(whole), fraction);
    case LanguageId::hu:
      if (!is_whole(number)) {
        if (has_exponent) return std::nullopt;
        return hungarian_decimal(std::to_string(whole), fraction);
      }
      if (has_exponent || hungarian_whole_fails(whole)) return std::nullopt;
      return cardinal_words(language, whole);
    case LanguageId::ar: {
      const auto [left, right] = arabic_parts(number);
      if (left == 0 && right == 0 && number > 0) return "";
      return trim(arabic_words(left, right, {}));
    }
    case LanguageId::tr:
    case LanguageId::hi:
    case LanguageId::zh:
    case LanguageId::ja: return std::nullopt;
    default: {
      if (is_whole(number)) return cardinal_words(language, whole);
      const std::optional<std::string> digits = fraction_read_by_digits(number);
      if (!digits) return std::nullopt;
      std::string words = *cardinal_words(language, whole) + " " + point_word(language) + " " +
                          digit_words(language, *digits);
      if (language == LanguageId::pt) words = portuguese_without_and(std::move(words));
      return words;
    }
  }
}

Words written_decimal_words(LanguageId language, std::string_view whole,
                            std::string_view fraction) {
  Words words;
  if (language == LanguageId::ru) words = russian_decimal(whole, fraction);
  if (language == LanguageId::hu) words = hungarian_decimal(whole, fraction);
  if (words) return words;
  const Words left = cardinal_words(language, to_integer(whole), CleanStyle::best);
  Words right = digit_words(language, fraction);
  if (language == LanguageId::pl || language == LanguageId::cs) {
    right = fraction_as_number(language, fraction, false);
  }
  if (!left || !right) return std::nullopt;
  const char* point = language == LanguageId::ru ? "запятая" : point_word(language);
  return *left + " " + point + " " + *right;
}

}  // namespace tandem
