
#include "text/romanise.h"

namespace tandem {

namespace {

constexpr std::u32string_view initials[] = {U"g",  U"kk", U"n", U"d",  U"tt", U"l", U"m",
                                            U"b",  U"pp", U"s", U"ss", U"",   U"j", U"jj",
                                            U"ch", U"k",  U"t", U"p",  U"h"};
constexpr std::u32string_view vowels[] = {U"a",  U"ae", U"ya", U"yae", U"eo", U"e",  U"yeo",
                                          U"ye", U"o",  U"wa", U"wae", U"oe", U"yo", U"u",
                                          U"wo", U"we", U"wi", U"yu",  U"eu", U"ui", U"i"};
constexpr std::u32string_view finals[] = {
    U"",   U"g",  U"kk", U"gs", U"n",  U"nj", U"nh", U"d",  U"l", U"lg", U"lm", U"lb", U"ls", U"lt",
    U"lp", U"lh", U"m",  U"b",  U"bs", U"s",  U"ss", U"ng", U"j", U"ch", U"k",  U"t",  U"p",  U"h"};

template <size_t count>
bool holds(const std::u32string_view (&table)[count], std::u32string_view letters) {
  for (const std::u32string_view entry : table) {
    if (entry == letters) return true;
  }
  return false;
}

// Whether a final and an initial, written together, could be another final and initial. A final
// that takes all letters does not count.
bool is_ambiguous(std::u32string_view letters) {
  int ways = 0;
  for (size_t cut = 0; cut < letters.size(); ++cut) {
    if (holds(finals, letters.substr(0, cut)) && holds(initials, letters.substr(cut))) ++ways;
  }
  return ways > 1;
}

struct Hyphens {
  bool needed[std::size(finals)][std::size(initials)];
};

Hyphens find_hyphens() {
  Hyphens hyphens;
  for (size_t f = 0; f < std::size(finals); ++f) {
    for (size_t i = 0; i < std::size(initials); ++i) {
      std::u32string letters(finals[f]);
      letters += initials[i];
      hyphens.needed[f][i] = initials[i].empty() || is_ambiguous(letters);
    }
  }
  return hyphens;
}

}  // namespace

std::u32string romanise_korean(std::u32string_view text) {
  static const Hyphens hyphens = find_hyphens();
  constexpr char32_t first = U'가', last = U'힣';
  constexpr size_t none = std::size(finals);
  std::u32string result;
  result.reserve(text.size() * 3);
  size_t previous = none;
  for (const char32_t c : text) {
    if (c < first || c > last) {
      result.push_back(c);
      previous = none;
      continue;
    }
    const size_t index = c - first;
    const size_t initial = index / 588, vowel = index / 28 % 21, final = index % 28;
    if (previous != none && hyphens.needed[previous][initial]) result.push_back(U'-');
    result.append(initials[initial]).append(vowels[vowel]).append(finals[final]);
    previous = final;
  }
  return result;
}

}  // namespace tandem
