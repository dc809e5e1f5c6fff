// Arabic number words in groups of three digits, as num2words 0.5.14 puts them together. ICU's own
// rules for Arabic differ in order, gender and spelling.
#include <cmath>
#include <utility>

#include "text/number_words.h"

namespace tandem {

namespace {

constexpr int hundredths_level = -1;

constexpr const char* ones[] = {"",         "واحد",    "اثنان",    "ثلاثة",      "أربعة",
                                "خمسة",     "ستة",     "سبعة",     "ثمانية",     "تسعة",
                                "عشرة",     "أحد عشر", "اثنا عشر", "ثلاثة عشر",  "أربعة عشر",
                                "خمسة عشر", "ستة عشر", "سبعة عشر", "ثمانية عشر", "تسعة عشر"};
constexpr const char* feminine_ones[] = {
    "",          "إحدى",     "اثنتان",  "ثلاث",     "أربع",       "خمس",        "ست",
    "سبع",       "ثمان",     "تسع",     "عشر",      "إحدى عشرة",  "اثنتا عشرة", "ثلاث عشرة",
    "أربع عشرة", "خمس عشرة", "ست عشرة", "سبع عشرة", "ثماني عشرة", "تسع عشرة"};
constexpr const char* tens_words[] = {"",      "",     "عشرون", "ثلاثون", "أربعون",
                                      "خمسون", "ستون", "سبعون", "ثمانون", "تسعون"};
constexpr const char* hundreds_words[] = {"",        "مائة",   "مئتان",   "ثلاثمائة", "أربعمائة",
                                          "خمسمائة", "ستمائة", "سبعمائة", "ثمانمائة", "تسعمائة"};

// The unit of a group of three digits: one, two, two with nothing after it, three to ten, more
// with something after it.
struct Group {
  const char *one, *two, *two_alone, *few, *many;
};
constexpr Group groups[] = {
    {"مائة", "مئتان", "مئتا", "", ""},
    {"ألف", "ألفان", "ألفا", "آلاف", "ألفاً"},
    {"مليون", "مليونان", "مليونا", "ملايين", "مليوناً"},
    {"مليار", "ملياران", "مليارا", "مليارات", "ملياراً"},
    {"تريليون", "تريليونان", "تريليونا", "تريليونات", "تريليوناً"},
    {"كوادريليون", "كوادريليونان", "كوادريليونا", "كوادريليونات", "كوادريليوناً"}};

bool is_two_of_a_unit(int64_t number) {
  while (number >= 1000 && number % 1000 == 0) number /= 1000;
  return number == 2;
}

std::string group_words(int group, int level, int64_t whole, bool feminine) {
  const auto unit_word = [&](int value) {
    const bool is_feminine = level == hundredths_level || (level == 0 && feminine);
    return is_feminine ? feminine_ones[value] : ones[value];
  };
  const int tens = group % 100, hundreds = group / 100;
  std::string words;
  if (hundreds > 0) {
    words = tens == 0 && hundreds == 2 ? groups[0].two_alone : hundreds_words[hundreds];
    if (tens != 0) words += " و ";
  }
  if (tens == 0) return words;
  if (tens < 20) {
    if (tens == 2 && hundreds == 0 && level > 0) {
      return is_two_of_a_unit(whole) ? groups[level].two_alone : groups[level].two;
    }
    return words + (tens == 1 && level > 0 ? groups[level].one : unit_word(tens));
  }
  if (tens % 10 > 0) words += std::string(unit_word(tens % 10)) + " و ";
  return words + tens_words[tens / 10];
}

const char* unit_form(const char* const (&forms)[4], int64_t number, bool two_only_alone) {
  const int64_t rest = number % 100;
  if (rest < 2) return forms[0];
  if (rest == 2) return two_only_alone && number != 2 ? forms[0] : forms[1];
  return rest <= 10 ? forms[2] : forms[3];
}

}  // namespace

std::string arabic_words(int64_t whole, int hundredths, const ArabicUnits& units) {
  if (whole == 0 && hundredths == 0) return "صفر";
  std::string words;
  int level = 0;
  for (int64_t rest = whole; rest > 0; rest /= 1000, ++level) {
    const int group = static_cast<int>(rest % 1000);
    if (group == 0) continue;
    if (level > 0) {
      const Group& unit = groups[level];
      const bool last = words.empty();
      if (!last) words = "و " + words;
      if (group > 2) {
        const char* form = group % 100 == 1 || last ? unit.one : unit.many;
        if (group <= 10) form = unit.few;
        words = std::string(form) + " " + words;
      }
    }
    words = group_words(group, level, whole, units.feminine) + " " + words;
  }
  if (whole != 0) words += unit_form(units.unit, whole, true);
  if (hundredths != 0) {
    words += std::string(" ") + units.separator + " ";
    words += group_words(hundredths, hundredths_level, whole, units.feminine);
    words += std::string(" ") + unit_form(units.part, hundredths, false);
  }
  return words;
}

std::pair<int64_t, int> arabic_parts(double number) {
  const auto whole = static_cast<int64_t>(number);
  const double rest = number - static_cast<double>(whole);
  if (rest == 0) return {whole, 0};
  std::string digits = std::to_string(std::llrint(rest * 1e9));
  if (digits.size() < 9) digits.insert(0, 9 - digits.size(), '0');
  digits.erase(digits.find_last_not_of('0') + 1);
  digits.append(2, '0');
  return {whole, (digits[0] - '0') * 10 + (digits[1] - '0')};
}

}  // namespace tandem
