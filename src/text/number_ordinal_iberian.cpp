#include <cmath>

#include "text/number_ordinal.h"
#include "util/text.h"

namespace tandem {

std::string spanish_ordinal(int64_t number) {
  constexpr const char* units[] = {"",       "primero", "segundo", "tercero", "cuarto",
                                   "quinto", "sexto",   "séptimo", "octavo",  "noveno"};
  constexpr const char* tens[] = {
      "",           "décimo",       "vigésimo",   "trigésimo", "quadragésimo", "quincuagésimo",
      "sexagésimo", "septuagésimo", "octogésimo", "nonagésimo"};
  constexpr const char* hundreds[] = {"",
                                      "centésimo",
                                      "ducentésimo",
                                      "tricentésimo",
                                      "cuadrigentésimo",
                                      "quingentésimo",
                                      "sexcentésimo",
                                      "septigentésimo",
                                      "octigentésimo",
                                      "noningentésimo"};
  constexpr const char* thousands[] = {
      "", "milésimo", "millonésimo", "billonésimo", "trillonésimo", "cuadrillonésimo"};
  if (number < 10) return units[number];
  if (number == 11 || number == 12) return std::string("décimo") + units[number - 10];
  if (number < 100) return trim(std::string(tens[number / 10]) + " " + units[number % 10]);
  if (number < 1000) {
    return trim(std::string(hundreds[number / 100]) + " " + spanish_ordinal(number % 100));
  }
  if (number == 1000) return thousands[1];
  // num2words takes the logarithm in floating point, which is a little low for exact powers.
  const auto power = static_cast<int>(std::log(static_cast<double>(number)) / std::log(1000.0));
  int64_t unit = 1;
  for (int i = 0; i < power; ++i) unit *= 1000;
  const int64_t count = number / unit;
  const std::string before = count == 1 ? "" : *cardinal_words(LanguageId::es, count);
  return trim(before + thousands[power] + " " + spanish_ordinal(number % unit));
}

Words portuguese_ordinal(int64_t number) {
  constexpr const char* words[3][10] = {
      {"", "primeiro", "segundo", "terceiro", "quarto", "quinto", "sexto", "sétimo", "oitavo",
       "nono"},
      {"", "décimo", "vigésimo", "trigésimo", "quadragésimo", "quinquagésimo", "sexagésimo",
       "septuagésimo", "octogésimo", "nonagésimo"},
      {"", "centésimo", "ducentésimo", "tricentésimo", "quadrigentésimo", "quingentésimo",
       "seiscentésimo", "septigentésimo", "octigentésimo", "nongentésimo"}};
  constexpr const char* thousands[] = {
      "", "milésimo", "milionésimo", "milésimo milionésimo", "bilionésimo", "milésimo bilionésimo"};
  std::string result;
  const char* pending = "";  // the unit of this group, said once, before its last digit
  const auto prepend = [&](const char* word) {
    if (*word != 0) result = result.empty() ? word : std::string(word) + " " + result;
  };
  int place = 0;
  for (int64_t rest = number; rest > 0; rest /= 10, ++place) {
    if (place > 0 && place % 3 == 0) pending = thousands[place / 3];
    const auto digit = static_cast<size_t>(rest % 10);
    if (digit != 0) {
      prepend(pending);
      pending = "";
    }
    prepend(words[place % 3][digit]);
  }
  // Not "primeiro milésimo".
  if (result.starts_with("primeiro") && number != 1) {
    result.erase(0, std::min<size_t>(9, result.size()));
  }
  return result;
}

}  // namespace tandem
