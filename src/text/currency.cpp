#include "text/currency.h"

#include <cstdio>

#include "text/currency_forms.h"
#include "text/number_text.h"
#include "util/text.h"

namespace tandem {

namespace {

struct Amount {
  int64_t units;
  int cents;
};

bool too_large(double amount) { return !(amount < largest_amount); }

// Halves are rounded up, as written in decimal.
Amount parts_of(double amount) {
  char digits[64];
  const int length = std::snprintf(digits, sizeof digits, "%.25f", amount);
  const std::string text(digits, static_cast<size_t>(length));
  const size_t point = text.find('.');
  int64_t cents = std::stoll(text.substr(0, point)) * 100 + std::stoi(text.substr(point + 1, 2));
  if (text[point + 3] >= '5') ++cents;
  return {cents / 100, static_cast<int>(cents % 100)};
}

int plural_of(LanguageId language, int64_t number) {
  if (language == LanguageId::pl || language == LanguageId::cs) return polish_plural(number);
  if (language == LanguageId::ru) return russian_plural(number);
  return number == 1 ? 0 : 1;
}

// What stands between units and cents, without the space after it.
const char* joint(LanguageId language) {
  switch (language) {
    case LanguageId::es: return " con";
    case LanguageId::fr: return " et";
    case LanguageId::de: return " und";
    case LanguageId::it:
    case LanguageId::pt: return " e";
    case LanguageId::tr:
    case LanguageId::ko:
    case LanguageId::hi: return "";
    default: return ",";
  }
}

void spanish_one(std::string& words) {
  replace_all(words, "veintiuno", "veintiún");
  replace_all(words, "uno", "un");
}

// "um milhão euros" is said "um milhão de euros".
void portuguese_of(std::string& words, const char* unit) {
  for (const char* million : {"milhão", "milhões", "bilião", "biliões", "trilião", "triliões"}) {
    const std::string word = million;
    if (words.find(word + " " + unit) == std::string::npos) continue;
    words.insert(words.find(word) + word.size(), " de");
  }
}

std::string korean(const CurrencyForms& forms, const Amount& amount) {
  std::string units = *cardinal_words(LanguageId::ko, amount.units);
  replace_all(units, " ", "");
  return units + forms.unit[0] + " " + *cardinal_words(LanguageId::ko, amount.cents) +
         forms.cent[0];
}

// Riyals, whatever the currency is: num2words knows no other that is written with a sign.
std::string arabic_riyals(double amount) {
  constexpr ArabicUnits riyals{.unit = {"ريال", "ريالان", "ريالات", "ريالاً"},
                               .part = {"هللة", "هللتان", "هللات", "هللة"},
                               .separator = "و"};
  const auto [units, cents] = arabic_parts(amount);
  if (units == 0 && cents == 0 && amount > 0) return "";
  return arabic_words(units, cents, riyals);
}

// The count as it stands before a currency's name; `feminine` where the name is.
std::string counted(LanguageId language, int64_t number, bool feminine, const char* czech_one) {
  std::string words = *cardinal_words(language, number, CleanStyle::best);
  const auto end = [&](std::string_view from, std::string_view to) {
    if (words.ends_with(from)) words.replace(words.size() - from.size(), from.size(), to);
  };
  switch (language) {
    case LanguageId::es:
      end("veintiuno", feminine ? "veintiuna" : "veintiún");
      end("uno", feminine ? "una" : "un");
      if (feminine) replace_all(words, "ientos", "ientas");
      break;
    case LanguageId::it: end("uno", feminine && number == 1 ? "una" : "un"); break;
    case LanguageId::fr:
      if (feminine) end("un", "une");
      break;
    case LanguageId::pt:
      if (!feminine) break;
      end("um", "uma");
      end("dois", "duas");
      replace_all(words, "entos", "entas");
      break;
    case LanguageId::de: end("eins", "ein"); break;
    case LanguageId::cs:
      if (number == 1) words = czech_one;
      break;
    default: break;
  }
  return words;
}

}  // namespace

Words currency_words(LanguageId language, Currency currency, double amount) {
  if (too_large(amount)) return std::nullopt;
  if (language == LanguageId::ar) return arabic_riyals(amount);
  const CurrencyForms forms = num2words_forms(language, currency);
  if (forms.unit[0] == nullptr) return std::nullopt;
  const Amount parts = parts_of(amount);
  if (language == LanguageId::ko) return korean(forms, parts);

  std::string units = *cardinal_words(language, parts.units);
  std::string cents = *cardinal_words(language, parts.cents);
  const bool is_pound = currency == Currency::pound;
  if (language == LanguageId::es) {
    if (is_pound) {
      replace_all(units, "uno", "una");
      replace_all(units, "cientos", "cientas");
    }
    spanish_one(units);
    spanish_one(cents);
  }
  units += std::string(" ") + forms.unit[plural_of(language, parts.units)];
  cents += std::string(" ") + forms.cent[plural_of(language, parts.cents)];
  std::string words = units + joint(language) + " " + cents;
  if (language == LanguageId::de) replace_all(words, "eins ", "ein ");
  if (language == LanguageId::it) {
    if (is_pound && words.starts_with("uno ")) words.replace(0, 3, "una");
    replace_all(words, "uno", "un");
  }
  if (language == LanguageId::pt) {
    portuguese_of(words, forms.unit[1]);
    replace_all(words, " e zero cêntimos", "");
  }
  return words;
}

Words spoken_currency(LanguageId language, Currency currency, double amount) {
  if (too_large(amount)) return std::nullopt;
  const Amount parts = parts_of(amount);
  if (language == LanguageId::ar) {
    const ArabicUnits units = arabic_units(currency);
    if (parts.units == 0 && parts.cents == 0) {
      return *cardinal_words(language, 0) + " " + units.unit[0];
    }
    return arabic_words(parts.units, parts.cents, units);
  }
  const CurrencyForms forms = spoken_forms(language, currency);
  if (forms.unit[0] == nullptr) return std::nullopt;
  const bool is_pound = currency == Currency::pound;
  const bool feminine = is_pound && (language == LanguageId::es || language == LanguageId::fr ||
                                     language == LanguageId::it || language == LanguageId::pt);
  const char* czech_one = is_pound ? "jedna" : currency == Currency::dollar ? "jeden" : "jedno";
  std::string words;
  if (parts.units > 0 || parts.cents == 0) {
    words = counted(language, parts.units, feminine, czech_one) + " " +
            forms.unit[plural_of(language, parts.units)];
    if (language == LanguageId::pt) portuguese_of(words, forms.unit[1]);
  }
  if (parts.cents > 0) {
    if (!words.empty()) words += std::string(joint(language)) + " ";
    words += counted(language, parts.cents, false, "jeden") + " " +
             forms.cent[plural_of(language, parts.cents)];
  }
  return words;
}

}  // namespace tandem
