// What num2words 0.5.14 says wrongly and the released XTTS v2 therefore heard.
#include "text/number_text.h"
#include "text/number_words.h"
#include "util/text.h"

namespace tandem {

namespace {

Words right(LanguageId language, int64_t number) {
  return cardinal_words(language, number, CleanStyle::best);
}

std::string italian_below_million(int64_t number) {
  const int64_t unit = number < 1000 ? 100 : 1000;
  const int64_t count = number / unit, rest = number % unit;
  std::string words;
  if (unit == 100) {
    words = (count == 1 ? "" : *right(LanguageId::it, count)) + "cento";
  } else {
    words = count == 1 ? "mille" : italian_with_mistakes(count) + "mila";
  }
  if (rest != 0) words += italian_with_mistakes(rest);
  if (unit == 100) {
    replace_all(words, "oo", "o");
    replace_all(words, "io", "o");
  }
  return words;
}

}  // namespace

std::string italian_accents(const std::string& words) {
  std::string result;
  for (std::string word : split(words, ' ')) {
    const bool compound = word.size() > 3 && word.ends_with("tre");
    replace_all(word, "tré", "tre");
    if (compound) word.replace(word.size() - 1, 1, "é");
    if (!result.empty()) result += ' ';
    result += word;
  }
  return result;
}

// Accents are set at every level of the words, and an accent that is there already is taken away:
// "ventitré", "centoventitre", "millecentoventitré".
std::string italian_with_mistakes(int64_t number) {
  if (number < 100) return *right(LanguageId::it, number);
  if (number < 1'000'000) return italian_accents(italian_below_million(number));
  constexpr const char* one[] = {" milione", " miliardo", " bilione", " biliardo"};
  constexpr const char* many[] = {" milioni", " miliardi", " bilioni", " biliardi"};
  int level = 0;
  int64_t unit = 1'000'000;
  for (; number / unit >= 1000; ++level) unit *= 1000;
  const int64_t count = number / unit, rest = number % unit;
  std::string words = count == 1 ? "un" : italian_with_mistakes(count);
  words += count == 1 ? one[level] : many[level];
  if (rest != 0) {
    const std::string last = italian_with_mistakes(rest);
    words += (last.find(" e ") == std::string::npos ? " e " : ", ") + last;
  }
  return italian_accents(words);
}

std::string turkish_with_mistakes(int64_t number, bool ordinal) {
  constexpr const char* units[] = {"", "bin", "milyon", "milyar", "trilyon", "katrilyon"};
  if (number == 0) return *right(LanguageId::tr, 0);
  // A cardinal that is no exact double has no words.
  if (!ordinal && static_cast<int64_t>(static_cast<double>(number)) != number) return "";
  std::string words;
  int level = 0;
  for (int64_t left = number; left > 0; left /= 1000, ++level) {
    const int64_t group = left % 1000;
    if (group == 0) continue;
    const bool first = left < 1000, followed = !words.empty();
    std::string said = *right(LanguageId::tr, group);
    if (level == 1 && group == 1) said.clear();
    // A lone digit of a middle group is lost; in ordinals only the one.
    if (level >= 2 && !first && followed && group < (ordinal ? 2 : 10)) said.clear();
    // The "bir" of a number of six digits is lost.
    if (level == 1 && first && followed && group > 100 && group % 10 == 1) {
      said = *right(LanguageId::tr, group - 1);
    }
    words = said + units[level] + words;
  }
  return words;
}

}  // namespace tandem
