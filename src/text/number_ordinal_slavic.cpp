#include <array>
#include <vector>

#include "text/number_ordinal.h"
#include "util/text.h"

namespace tandem {

namespace {

std::vector<int> groups_of_three(int64_t number) {
  std::vector<int> groups;  // lowest first
  do {
    groups.push_back(static_cast<int>(number % 1000));
    number /= 1000;
  } while (number > 0);
  return groups;
}

std::string polish_cardinal(int64_t number) { return *cardinal_words(LanguageId::pl, number); }

constexpr const char* polish_units[] = {"",          "pierwszy",    "drugi",      "trzeci",
                                        "czwarty",   "piąty",       "szósty",     "siódmy",
                                        "ósmy",      "dziewiąty",   "dziesiąty",  "jedenasty",
                                        "dwunasty",  "trzynasty",   "czternasty", "piętnasty",
                                        "szesnasty", "siedemnasty", "osiemnasty", "dziewiętnasty"};
constexpr const char* polish_unit_stems[] = {
    "",           "pierwszo",  "dwu",         "trzy",       "cztero",
    "pięcio",     "sześcio",   "siedmio",     "ośmio",      "dziewięcio",
    "dziesięcio", "jedenasto", "dwunasto",    "trzynasto",  "czternasto",
    "piętnasto",  "szesnasto", "siedemnasto", "osiemnasto", "dziewiętnasto"};
constexpr const char* polish_tens[] = {"",
                                       "",
                                       "dwudziesty",
                                       "trzydziesty",
                                       "czterdziesty",
                                       "pięćdziesiąty",
                                       "sześćdziesiąty",
                                       "siedemdziesiąty",
                                       "osiemdziesiąty",
                                       "dziewięćdziesiąty"};
constexpr const char* polish_ten_stems[] = {"",
                                            "",
                                            "dwudziesto",
                                            "trzydiesto",
                                            "czterdziesto",
                                            "pięćdziesięcio",
                                            "sześćdziesięcio",
                                            "siedemdziesięcio",
                                            "osiemdziesięcio",
                                            "dziewięćdziesięcio"};
constexpr const char* polish_hundreds[] = {
    "",          "setny",      "dwusetny",    "trzysetny",  "czterysetny",
    "pięćsetny", "sześćsetny", "siedemsetny", "osiemsetny", "dziewięćsetny"};
constexpr const char* polish_hundred_stems[] = {"",          "stu",        "dwustu",   "trzystu",
                                                "czterystu", "pięcset",    "sześćset", "siedemset",
                                                "ośiemset",  "dziewięćset"};

// The last group that is not zero; as a stem when a unit ("tysięczny") follows.
Words polish_last_group(int group, bool stem) {
  const int hundreds = group / 100, rest = group % 100;
  if (rest == 0) return stem ? polish_hundred_stems[hundreds] : polish_hundreds[hundreds];
  if (stem && group == 1) return "";
  std::string words;
  const bool plain = rest < 20 || rest % 10 == 0;
  if (hundreds > 0) {
    if (plain && stem) return std::nullopt;  // num2words has no stem of hundreds here and raises
    words = polish_cardinal(hundreds * 100) + " ";
  }
  if (rest < 20) return words + (stem ? polish_unit_stems[rest] : polish_units[rest]);
  if (plain) return words + (stem ? polish_ten_stems[rest / 10] : polish_tens[rest / 10]);
  return words + polish_tens[rest / 10] + " " + polish_units[rest % 10];
}

constexpr const char* russian_units[] = {"",
                                         "первый",
                                         "второй",
                                         "третий",
                                         "четвёртый",
                                         "пятый",
                                         "шестой",
                                         "седьмой",
                                         "восьмой",
                                         "девятый",
                                         "десятый",
                                         "одиннадцатый",
                                         "двенадцатый",
                                         "тринадцатый",
                                         "четырнадцатый",
                                         "пятнадцатый",
                                         "шестнадцатый",
                                         "семнадцатый",
                                         "восемнадцатый",
                                         "девятнадцатый"};
constexpr const char* russian_tens[] = {"",
                                        "",
                                        "двадцатый",
                                        "тридцатый",
                                        "сороковой",
                                        "пятидесятый",
                                        "шестидесятый",
                                        "семидесятый",
                                        "восьмидесятый",
                                        "девяностый"};
constexpr const char* russian_unit_stems[] = {
    "",           "одно",        "двух",       "трёх",         "четырёх",
    "пяти",       "шести",       "семи",       "восьми",       "девяти",
    "десяти",     "одиннадцати", "двенадцати", "тринадцати",   "четырнадцати",
    "пятнадцати", "шестнадцати", "семнадцати", "восемнадцати", "девятнадцати"};
constexpr const char* russian_ten_stems[] = {"",
                                             "",
                                             "двадцати",
                                             "тридцати",
                                             "сорока",
                                             "пятидесяти",
                                             "шестидесяти",
                                             "семидесяти",
                                             "восьмидесяти",
                                             "девяносто"};
constexpr const char* russian_hundred_stems[] = {"",           "сто",      "двухсот",  "трёхсот",
                                                 "четырёхсот", "пятисот",  "шестисот", "семисот",
                                                 "восьмисот",  "девятисот"};
constexpr const char* russian_thousands[] = {
    "", "тысячный", "миллионный", "миллиардный", "триллионный", "квадриллионный"};
constexpr const char* russian_counted[][3] = {{"", "", ""},
                                              {"тысяча", "тысячи", "тысяч"},
                                              {"миллион", "миллиона", "миллионов"},
                                              {"миллиард", "миллиарда", "миллиардов"},
                                              {"триллион", "триллиона", "триллионов"},
                                              {"квадриллион", "квадриллиона", "квадриллионов"}};

// "двадцатипятитысячный"
std::string russian_joined(int group, size_t level) {
  const int rest = group % 100;
  std::string word = russian_hundred_stems[group / 100];
  if (rest < 20) {
    if (group != 1) word += russian_unit_stems[rest];
  } else {
    word += std::string(russian_ten_stems[rest / 10]) + russian_unit_stems[rest % 10];
  }
  return word + russian_thousands[level];
}

// num2words makes the ends of all groups ordinal: "двадцатый тысяч первый".
std::vector<std::string> russian_group(int group, size_t level) {
  const int hundreds = group / 100, rest = group % 100;
  const auto cardinal = [&](int number) {
    return level == 1 ? russian_feminine_words(number) : *cardinal_words(LanguageId::ru, number);
  };
  std::vector<std::string> words;
  if (hundreds > 0) {
    words.push_back(rest == 0 ? std::string(hundreds == 1 ? "" : russian_hundred_stems[hundreds]) +
                                    (hundreds == 1 ? "сотый" : "ый")
                              : cardinal(hundreds * 100));
  }
  if (rest >= 10 && rest < 20) {
    words.push_back(russian_units[rest]);
  } else {
    const int unit = rest % 10;
    if (rest >= 20) words.push_back(unit == 0 ? russian_tens[rest / 10] : cardinal(rest - unit));
    if (unit > 0 && level == 0) words.push_back(russian_units[unit]);
    if (unit > 0 && level > 0 && group != 1) words.push_back(cardinal(unit));
  }
  if (level > 0) words.push_back(russian_counted[level][russian_plural(group)]);
  return words;
}

}  // namespace

Words polish_ordinal(int64_t number) {
  constexpr const char* units[] = {"", "tysięczny", "milionowy", "milairdowy"};
  if (number == 0) return std::nullopt;
  const std::vector<int> groups = groups_of_three(number);
  size_t level = 0;
  int64_t scale = 1;
  for (; groups[level] == 0; ++level) scale *= 1000;
  if (level > 3) return std::nullopt;
  const Words last = polish_last_group(groups[level], level > 0);
  if (!last) return last;
  const bool alone = level + 1 == groups.size();
  std::string words = alone ? "" : polish_cardinal(number - groups[level] * scale);
  if (!words.empty() && !last->empty()) words += ' ';
  words += *last;
  if (level > 0 && groups[level] == 1 && !words.empty()) words += ' ';
  return words + units[level];
}

std::string russian_ordinal(int64_t number) {
  if (number == 0) return "нулевой";
  const std::vector<int> groups = groups_of_three(number);
  size_t lowest = 0;
  while (groups[lowest] == 0) ++lowest;
  std::vector<std::string> words;
  for (size_t level = groups.size(); level-- > 0;) {
    if (groups[level] == 0) continue;
    if (level == lowest && lowest > 0) {
      words.push_back(russian_joined(groups[level], level));
    } else {
      for (std::string& word : russian_group(groups[level], level)) {
        words.push_back(std::move(word));
      }
    }
  }
  return join(words, " ");
}

Words czech_ordinal(int64_t number) {
  constexpr const char* units[] = {"nultý",    "první",     "druhý",     "třetí",    "čtvrtý",
                                   "pátý",     "šestý",     "sedmý",     "osmý",     "devátý",
                                   "desátý",   "jedenáctý", "dvanáctý",  "třináctý", "čtrnáctý",
                                   "patnáctý", "šestnáctý", "sedmnáctý", "osmnáctý", "devatenáctý"};
  constexpr const char* tens[] = {"",         "",         "dvacátý",    "třicátý",   "čtyřicátý",
                                  "padesátý", "šedesátý", "sedmdesátý", "osmdesátý", "devadesátý"};
  constexpr const char* hundreds[] = {"",        "stý",      "dvoustý",  "třístý",  "čtyřstý",
                                      "pětistý", "šestistý", "sedmistý", "osmistý", "devítistý"};
  if (number > 999) return std::nullopt;
  const auto rest = static_cast<size_t>(number % 100);
  std::string words;
  if (number >= 100) {
    words = hundreds[number / 100];
    if (rest == 0) return words;
    words += ' ';
  }
  if (rest < 20) return words + units[rest];
  words += tens[rest / 10];
  return rest % 10 == 0 ? words : words + " " + units[rest % 10];
}

}  // namespace tandem
