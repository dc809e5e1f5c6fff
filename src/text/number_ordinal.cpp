// Ordinals as num2words 0.5.14 makes them: in most languages by changing the end of the cardinal.
#include <array>
#include <cmath>
#include <utility>

#include "text/number_ordinal.h"
#include "text/number_words.h"
#include "util/text.h"

namespace tandem {

namespace {

using Ending = std::pair<std::string_view, std::string_view>;

// Changes the first of `endings` that `word` has.
template <size_t count>
bool change_ending(std::string& word, const Ending (&endings)[count]) {
  for (const auto& [from, to] : endings) {
    if (!word.ends_with(from)) continue;
    word.replace(word.size() - from.size(), from.size(), to);
    return true;
  }
  return false;
}

void drop_last_letter(std::string& word) {
  do {
    const auto byte = static_cast<unsigned char>(word.back());
    word.pop_back();
    if ((byte & 0xc0) != 0x80) return;
  } while (!word.empty());
}

std::string english(std::string word) {
  constexpr Ending endings[] = {{"one", "first"},      {"two", "second"},   {"three", "third"},
                                {"five", "fifth"},     {"eight", "eighth"}, {"nine", "ninth"},
                                {"twelve", "twelfth"}, {"y", "ieth"}};
  return change_ending(word, endings) ? word : word + "th";
}

std::string french(std::string word, int64_t number) {
  constexpr Ending endings[] = {{"cinq", "cinquième"}, {"neuf", "neuvième"}, {"e", "ième"}};
  if (number == 1) return "premier";
  return change_ending(word, endings) ? word : word + "ième";
}

std::string german(std::string word) {
  constexpr Ending endings[] = {{"eins", "ers"},    {"drei", "drit"}, {"acht", "ach"},
                                {"sieben", "sieb"}, {"ig", "igs"},    {"ert", "erts"},
                                {"end", "ends"},    {"ion", "ions"},  {"nen", "ns"},
                                {"rde", "rds"},     {"rden", "rds"}};
  word = lower(word);
  change_ending(word, endings);
  word += "te";
  if (word == "eintausendste" || word == "einhundertste") return word.substr(3);
  if (!word.ends_with("illionste") && !word.ends_with("illiardste")) return word;
  // "eine millionste" is "millionste", "zwei millionste" is one word.
  size_t space = word.rfind(' ');
  if (space != std::string::npos && space >= 4 && word.compare(space - 4, 4, "eine") == 0) {
    word.erase(space - 4, 5);
    space = word.rfind(' ');
  }
  if (space != std::string::npos) word.erase(space, 1);
  return word;
}

std::string italian(std::string word, int64_t number) {
  constexpr const char* first[] = {
      "zero",         "primo",      "secondo",         "terzo",        "quarto",
      "quinto",       "sesto",      "settimo",         "ottavo",       "nono",
      "decimo",       "undicesimo", "dodicesimo",      "tredicesimo",  "quattordicesimo",
      "quindicesimo", "sedicesimo", "diciassettesimo", "diciottesimo", "diciannovesimo"};
  if (number < 20) return first[number];
  const int64_t tens = number % 100;
  const bool is_teen = tens > 10 && tens < 20;
  if (!is_teen && tens % 10 == 6) return word + "esimo";
  drop_last_letter(word);
  if (!is_teen && tens % 10 == 3) return word + "eesimo";
  if (word.ends_with("mil")) word += "l";
  return word + "esimo";
}

std::string dutch(std::string word) {
  constexpr Ending endings[] = {{"nul", "nuld"},       {"één", "eerst"},    {"twee", "tweed"},
                                {"drie", "derd"},      {"vier", "vierd"},   {"vijf", "vijfd"},
                                {"zes", "zesd"},       {"zeven", "zevend"}, {"acht", "achtst"},
                                {"negen", "negend"},   {"tien", "tiend"},   {"elf", "elfd"},
                                {"twaalf", "twaalfd"}, {"ig", "igst"},      {"erd", "erdst"},
                                {"end", "endst"},      {"joen", "joenst"},  {"rd", "rdst"}};
  change_ending(word, endings);
  return word + "e";
}

std::string turkish(std::string word) {
  constexpr Ending endings[] = {
      {"sıfır", "sıfırıncı"},   {"bir", "birinci"},       {"iki", "ikinci"},
      {"üç", "üçüncü"},         {"dört", "dördüncü"},     {"beş", "beşinci"},
      {"altı", "altıncı"},      {"yedi", "yedinci"},      {"sekiz", "sekizinci"},
      {"dokuz", "dokuzuncu"},   {"on", "onuncu"},         {"yirmi", "yirminci"},
      {"otuz", "otuzuncu"},     {"kırk", "kırkıncı"},     {"elli", "ellinci"},
      {"altmış", "altmışıncı"}, {"yetmiş", "yetmişinci"}, {"seksen", "sekseninci"},
      {"doksan", "doksanıncı"}, {"yüz", "yüzüncü"},       {"bin", "bininci"},
      {"milyar", "milyarıncı"}};
  change_ending(word, endings);
  return word;
}

std::string hungarian(std::string word, int64_t number) {
  constexpr Ending endings[] = {{"nulla", "nullad"},
                                {"egy", "egyed"},
                                {"kettő", "ketted"},
                                {"három", "harmad"},
                                {"négy", "negyed"},
                                {"öt", "ötöd"},
                                {"hat", "hatod"},
                                {"hét", "heted"},
                                {"nyolc", "nyolcad"},
                                {"kilenc", "kilenced"},
                                {"tíz", "tized"},
                                {"húsz", "huszad"},
                                {"harminc", "harmincad"},
                                {"negyven", "negyvened"},
                                {"ötven", "ötvened"},
                                {"hatvan", "hatvanad"},
                                {"hetven", "hetvened"},
                                {"nyolcvan", "nyolcvanad"},
                                {"kilencven", "kilencvened"},
                                {"száz", "század"},
                                {"ezer", "ezred"},
                                {"illió", "milliomod"},
                                {"illiárd", "milliárdod"}};
  if (number == 1) return "első";
  if (number == 2) return "második";
  change_ending(word, endings);
  return word + "ik";
}

std::string arabic(int64_t number) {
  constexpr const char* first[] = {"",         "اول",      "ثاني",     "ثالث",     "رابع",
                                   "خامس",     "سادس",     "سابع",     "ثامن",     "تاسع",
                                   "عاشر",     "حادي عشر", "ثاني عشر", "ثالث عشر", "رابع عشر",
                                   "خامس عشر", "سادس عشر", "سابع عشر", "ثامن عشر", "تاسع عشر"};
  if (number < 20) return first[number];
  return trim(arabic_words(number, 0, {.feminine = number < 100}));
}

}  // namespace

Words ordinal_words(LanguageId language, int64_t number, CleanStyle style) {
  if (number < 0 || number > largest_spoken_number) return std::nullopt;
  switch (language) {
    case LanguageId::es: return spanish_ordinal(number);
    case LanguageId::pt: return portuguese_ordinal(number);
    case LanguageId::pl: return polish_ordinal(number);
    case LanguageId::ru: return russian_ordinal(number);
    case LanguageId::ko: return korean_ordinal(number);
    case LanguageId::ar: return arabic(number);
    case LanguageId::cs:
    case LanguageId::hi:
    case LanguageId::zh:
    case LanguageId::ja: return std::nullopt;
    default: break;
  }
  if (language == LanguageId::tr && style == CleanStyle::coqui) {
    return turkish(turkish_with_mistakes(number, true));
  }
  const std::string cardinal = *cardinal_words(language, number, style);
  switch (language) {
    case LanguageId::fr: return french(cardinal, number);
    case LanguageId::de: return german(cardinal);
    case LanguageId::it: return italian(cardinal, number);
    case LanguageId::nl: return dutch(cardinal);
    case LanguageId::tr: return turkish(cardinal);
    case LanguageId::hu: return hungarian(cardinal, number);
    default: return english(cardinal);
  }
}

}  // namespace tandem
