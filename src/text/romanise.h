// East Asian text in Latin letters, which is what XTTS reads.
#pragma once

#include <string>
#include <string_view>

#include "text/clean.h"

namespace tandem {

// Hangul letter by letter (the academic way), with a hyphen where syllables could be split in two
// ways. Equal to hangul_romanize.
std::u32string romanise_korean(std::u32string_view text);

// Pinyin with the tone as a digit after the syllable, 5 for the neutral tone. One reading a
// character, the commonest: words whose characters are read otherwise differ from pypinyin, which
// has a dictionary of phrases.
std::u32string romanise_chinese(std::u32string_view text);

// Kana in Hepburn's romaji, lower case, words apart. Han characters need a dictionary of words to
// be read in Japanese, which cutlet has and we have not.
std::u32string romanise_japanese(std::u32string_view text);

// Numbers, dates, amounts, fractions and percentages in Han characters, full-width punctuation in
// half width.
std::u32string chinese_numbers(std::u32string_view text, CleanStyle style);

}  // namespace tandem
