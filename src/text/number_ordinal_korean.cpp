#include <utility>
#include <vector>

#include "text/number_ordinal.h"
#include "util/text.h"

namespace tandem {

namespace {

// The Korean word of one to ninety-nine for a Chinese one.
Words native_word(std::string_view word) {
  constexpr std::pair<const char*, const char*> table[] = {
      {"일", "한"},     {"이", "두"},     {"삼", "세"},     {"사", "네"},   {"오", "다섯"},
      {"육", "여섯"},   {"칠", "일곱"},   {"팔", "여덟"},   {"구", "아홉"}, {"십", "열"},
      {"이십", "스물"}, {"삼십", "서른"}, {"사십", "마흔"}, {"오십", "쉰"}, {"육십", "예순"},
      {"칠십", "일흔"}, {"팔십", "여든"}, {"구십", "아흔"}};
  for (const auto& [from, to] : table) {
    if (word == from) return to;
  }
  return std::nullopt;
}

}  // namespace

// num2words exchanges what follows the last "백" and raises where that is no number up to 99.
Words korean_ordinal(int64_t number) {
  if (number == 1) return "첫 번째";
  const std::string cardinal = *cardinal_words(LanguageId::ko, number);
  const std::string hundred = "백", ten = "십";
  const size_t space = cardinal.rfind(' ');
  const size_t word = space == std::string::npos ? 0 : space + 1;
  std::string before = cardinal.substr(0, word), last = cardinal.substr(word);
  if (const size_t at = last.rfind(hundred); at != std::string::npos) {
    before += last.substr(0, at + hundred.size()) + " ";
    last.erase(0, at + hundred.size());
  }
  const size_t at = last.find(ten);
  if (at == std::string::npos) {
    const Words native = native_word(last);
    if (!native) return native;
    return before + *native + " 번째";
  }
  const Words tens = native_word(last.substr(0, at + ten.size()));
  if (!tens) return tens;
  const std::string unit = last.substr(at + ten.size());
  return before + *tens + native_word(unit).value_or(unit) + " 번째";
}

}  // namespace tandem
