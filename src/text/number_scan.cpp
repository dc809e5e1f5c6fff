#include "text/clean_characters.h"
#include "text/number_expand.h"

namespace tandem {

namespace {

// The end of the number that starts at `start`, or `start`. Greedy, with the order of tries of a
// backtracking pattern: digits{1,3} (separator digits{3})* (point digits+)? at a word's end.
size_t grouped_number_end(std::u32string_view text, size_t start, char32_t separator,
                          char32_t point, bool loose) {
  const auto digit = [&](size_t at) { return is_decimal_digit(at_or_end(text, at)); };
  const auto ends_at = [&](size_t at) { return is_boundary(text[at - 1], at_or_end(text, at)); };
  size_t lead = 0;
  while (lead < 3 && digit(start + lead)) ++lead;
  for (; lead > 0; --lead) {
    const auto group_at = [&](size_t at) {
      const char32_t c = at_or_end(text, at);
      const bool separates = loose ? at < text.size() && c != U'\n' : c == separator;
      return separates && digit(at + 1) && digit(at + 2) && digit(at + 3);
    };
    size_t at = start + lead;
    size_t groups = 0;
    while (group_at(at)) {
      at += 4;
      ++groups;
    }
    for (;; at -= 4, --groups) {
      if (at_or_end(text, at) == point && digit(at + 1)) {
        size_t end = at + 2;
        while (digit(end)) ++end;
        if (ends_at(end)) return end;  // fewer digits would end inside the number
      }
      if (ends_at(at)) return at;
      if (groups == 0) break;
    }
  }
  return start;
}

}  // namespace

std::vector<TextRange> grouped_numbers(std::u32string_view text, char32_t separator, char32_t point,
                                       bool loose) {
  std::vector<TextRange> found;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!is_decimal_digit(text[at]) || !is_boundary(at == 0 ? 0 : text[at - 1], text[at])) continue;
    const size_t end = grouped_number_end(text, at, separator, point, loose);
    if (end == at) continue;
    found.push_back({at, end});
    at = end - 1;
  }
  return found;
}

std::vector<TextRange> amounts(std::u32string_view text, char32_t sign) {
  const auto in_run = [&](size_t at) {
    const char32_t c = at_or_end(text, at);
    return is_ascii_digit(c) || c == U'.' || c == U',';
  };
  std::vector<TextRange> found;
  if (text.find(sign) == std::u32string_view::npos) return found;
  for (size_t at = 0; at < text.size();) {
    const bool leads = text[at] == sign;
    if (!leads && !in_run(at)) {
      ++at;
      continue;
    }
    size_t end = leads ? at + 1 : at;
    while (in_run(end)) ++end;
    const size_t next = end == at ? at + 1 : end;
    if (leads) {
      while (end > at + 1 && !is_ascii_digit(text[end - 1])) --end;
      if (end == at + 1) {
        // Nothing was bought; what follows the sign may be the amount of the next one.
        at = at + 1;
        continue;
      }
      found.push_back({at, end});
      at = end;
      continue;
    }
    if (is_ascii_digit(text[end - 1]) && at_or_end(text, end) == sign) {
      found.push_back({at, end + 1});
      at = end + 1;
      continue;
    }
    at = next;
  }
  return found;
}

std::vector<std::u32string_view> ordinal_endings(LanguageId language) {
  switch (language) {
    case LanguageId::en:
    case LanguageId::hi: return {U"st", U"nd", U"rd", U"th"};
    case LanguageId::es: return {U"º", U"ª", U"er", U"o", U"a", U"os", U"as"};
    case LanguageId::fr: return {U"º", U"ª", U"er", U"re", U"e", U"ème"};
    case LanguageId::de: return {U"st", U"nd", U"rd", U"th", U"º", U"ª", U"."};
    case LanguageId::pt: return {U"º", U"ª", U"o", U"a", U"os", U"as"};
    case LanguageId::it: return {U"º", U"°", U"ª", U"o", U"a", U"i", U"e"};
    case LanguageId::pl: return {U"º", U"ª", U"st", U"nd", U"rd", U"th"};
    case LanguageId::ar: return {U"ون", U"ين", U"ث", U"ر", U"ى"};
    case LanguageId::cs: return {U"."};
    case LanguageId::ru: return {U"-й", U"-я", U"-е", U"-ое", U"-ье", U"-го"};
    case LanguageId::nl: return {U"de", U"ste", U"e"};
    case LanguageId::tr: return {U".", U"inci", U"nci", U"uncu", U"üncü"};
    case LanguageId::hu: return {U".", U"adik", U"edik", U"odik", U"ödik", U"ödike", U"ik"};
    case LanguageId::ko: return {U"번째", U"번", U"차", U"째"};
    case LanguageId::zh:
    case LanguageId::ja: break;
  }
  return {};
}

int64_t integer_of(std::u32string_view digits) {
  int64_t number = 0;
  for (const char32_t digit : digits) {
    const auto value = static_cast<int64_t>(digit - U'0');
    if (number > (largest_spoken_number - value) / 10) return largest_spoken_number + 1;
    number = number * 10 + value;
  }
  return number;
}

}  // namespace tandem
