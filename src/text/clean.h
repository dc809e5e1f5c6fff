// Text as it is spoken: lower case, numbers, currencies, abbreviations and symbols in words, spaces
// collapsed; Chinese, Japanese and Korean in Latin letters. For the 17 languages of XTTS v2; an
// unknown language is Error(data) with the list, and so are bytes that are no UTF-8. Every function
// may be called from any thread; the first call in a thread reads the rules of its language.
//
// Style coqui equals coqui-tts 0.28 (num2words 0.5.14), but for
//   numbers of more than 18 digits and amounts from 9e16: Error(data) where Coqui has words;
//   Chinese: readings of words longer than two characters, and numbers that Coqui's patterns
//     replace in another place than they stand; 99 % of sentences with numbers are equal, all of 40
//     everyday ones;
//   Japanese: kana differs in the borders of words (and so in the particles は and へ). Han
//     characters need a dictionary of words to be read in Japanese: they come out in pinyin
//     without tones. Loans in katakana are not turned back into English. 6 of 30 everyday
//     sentences are equal. Write kana.
// Where Coqui raises an exception (Czech ordinals, Hindi digits), style coqui throws Error(data).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

enum class CleanStyle {
  best,   // what a reader would say
  coqui,  // what coqui-tts 0.28 gives, its mistakes included
};

struct Language {
  std::string code;     // "en", "zh-cn"
  int character_limit;  // of one piece of text
};
const std::vector<Language>& languages();
// "zh" and "ZH-CN" are zh-cn, "en-US" is en. Throws Error(data).
const Language& find_language(std::string_view code);

std::string clean_text(std::string_view text, std::string_view language,
                       CleanStyle style = CleanStyle::best);

// UTF-8 in Unicode's composed form. Throws Error(data) for bytes that are no UTF-8.
std::string to_nfc(std::string_view text);

// Sentences, packed greedily into pieces of at most `limit` characters (code points); a sentence
// longer than that is cut at spaces.
std::vector<std::string> split_text(std::string_view text, std::string_view language, int limit);

}  // namespace tandem
