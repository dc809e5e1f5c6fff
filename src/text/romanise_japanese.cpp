#include <unicode/brkiter.h>
#include <unicode/translit.h>
#include <unicode/uscript.h>
#include <unicode/unistr.h>

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/error.h"
#include "text/clean_characters.h"
#include "text/romanise.h"

namespace tandem {

namespace {

void check(UErrorCode status, const char* what) {
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::internal,
                std::string("ICU has no ") + what + ": " + u_errorName(status) + ".");
  }
}

std::unique_ptr<icu::Transliterator> make_transliterator(const char16_t* rules) {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::Transliterator> made(
      icu::Transliterator::createInstance(icu::UnicodeString(rules), UTRANS_FORWARD, status));
  check(status, "transliterator for Japanese");
  return made;
}

struct Japanese {
  // Long vowels and tones as marks apart from their letters.
  std::unique_ptr<icu::Transliterator> kana =
      make_transliterator(u"NFKC; Katakana-Latin; Hiragana-Latin; NFD");
  std::unique_ptr<icu::Transliterator> han = make_transliterator(u"Han-Latin; NFD");
  std::unique_ptr<icu::BreakIterator> words;

  Japanese() {
    UErrorCode status = U_ZERO_ERROR;
    words.reset(icu::BreakIterator::createWordInstance(icu::Locale("ja"), status));
    check(status, "rules for Japanese words");
  }
};

char32_t half_width_mark(char32_t c) {
  switch (c) {
    case U'。': return U'.';
    case U'、': return U',';
    case U'「':
    case U'」':
    case U'『':
    case U'』': return U'"';
    case U'・': return U' ';
    case U'〜': return U'~';
    default: return c >= 0xff01 && c <= 0xff5e ? c - 0xfee0 : c;
  }
}

UScriptCode script_of(char32_t c) {
  UErrorCode status = U_ZERO_ERROR;
  return uscript_getScript(static_cast<UChar32>(c), &status);
}

bool is_kana(char32_t c) {
  const UScriptCode script = script_of(c);
  return script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA || c == U'ー';
}

// Cannot stand alone: small letters and the long mark belong to what is before them.
bool leans_back(char32_t c) {
  constexpr std::u32string_view small = U"っゃゅょぁぃぅぇぉーッャュョァィゥェォ";
  return small.find(c) != std::u32string_view::npos;
}

bool is_vowel_or_y(char16_t c) {
  return c == u'a' || c == u'i' || c == u'u' || c == u'e' || c == u'o' || c == u'y';
}

std::u32string kana_letters(const Japanese& japanese, std::u32string_view word) {
  while (!word.empty() && (word.back() == U'っ' || word.back() == U'ッ')) word.remove_suffix(1);
  icu::UnicodeString text = icu::UnicodeString::fromUTF32(
      reinterpret_cast<const UChar32*>(word.data()), static_cast<int32_t>(word.size()));
  // Where ICU writes what cutlet does not.
  constexpr std::pair<const char16_t*, const char16_t*> letters[] = {
      {u"ヂャ", u"jya"}, {u"ヂュ", u"jyu"}, {u"ヂョ", u"jyo"}, {u"ヂ", u"ジ"},   {u"ヅ", u"ズ"},
      {u"ぢゃ", u"jya"}, {u"ぢゅ", u"jyu"}, {u"ぢょ", u"jyo"}, {u"ぢ", u"じ"},   {u"づ", u"ず"},
      {u"ウィ", u"wi"},  {u"ウェ", u"we"},  {u"ウォ", u"wo"},  {u"トゥ", u"tu"}, {u"ドゥ", u"du"},
      {u"ヴァ", u"va"},  {u"ヴィ", u"vi"},  {u"ヴェ", u"ve"},  {u"ヴォ", u"vo"}};
  for (const auto& [from, to] : letters) text.findAndReplace(from, to);
  japanese.kana->transliterate(text);
  std::u32string result;
  for (int32_t i = 0; i < text.length(); ++i) {
    const char16_t c = text[i];
    if (c == 0x304 && !result.empty()) {
      result.push_back(result.back());  // a long vowel is written twice
    } else if (c == u'\'') {
      if (i + 1 < text.length() && is_vowel_or_y(text[i + 1])) result.push_back(c);
    } else if (c > u' ' && c != u'~' && (c < 0x300 || c >= 0x370)) {
      result.push_back(c);
    }
  }
  return result;
}

std::u32string han_letters(const Japanese& japanese, char32_t character) {
  icu::UnicodeString text(static_cast<UChar32>(character));
  japanese.han->transliterate(text);
  std::u32string result;
  for (int32_t i = 0; i < text.length(); ++i) {
    if (text[i] > u' ' && (text[i] < 0x300 || text[i] >= 0x370)) result.push_back(text[i]);
  }
  return result;
}

// A word in letters: runs of kana, Han characters one by one, the rest in lower case.
std::u32string transliterated(const Japanese& japanese, std::u32string_view word) {
  if (word == U"は") return U"wa";  // the particles
  if (word == U"へ") return U"e";
  std::u32string result;
  for (size_t at = 0; at < word.size();) {
    size_t end = at;
    while (end < word.size() && is_kana(word[end])) ++end;
    if (end > at) {
      result += kana_letters(japanese, word.substr(at, end - at));
      at = end;
    } else if (script_of(word[at]) == USCRIPT_HAN) {
      result += han_letters(japanese, word[at++]);
    } else {
      result.push_back(word[at++]);
    }
  }
  return to_lower(result);
}

// ICU's words. What its dictionary does not know comes as single kana: three and more of them in a
// row are one word, and small letters join what is before and after them.
std::vector<std::u32string> words_of(const Japanese& japanese, std::u32string_view text) {
  const icu::UnicodeString unicode = icu::UnicodeString::fromUTF32(
      reinterpret_cast<const UChar32*>(text.data()), static_cast<int32_t>(text.size()));
  japanese.words->setText(unicode);
  std::vector<std::u32string> words;
  size_t singles = 0;
  bool join_next = false;
  int32_t start = japanese.words->first();
  for (int32_t end = japanese.words->next(); end != icu::BreakIterator::DONE;
       start = end, end = japanese.words->next()) {
    std::u32string word;
    for (int32_t i = start; i < end; i = unicode.moveIndex32(i, 1)) {
      word.push_back(static_cast<char32_t>(unicode.char32At(i)));
    }
    const bool kana = is_kana(word[0]);
    const bool join = kana && !words.empty() && is_kana(words.back().back()) &&
                      (join_next || leans_back(word[0]));
    join_next = kana && (word.back() == U'っ' || word.back() == U'ッ');
    if (join) {
      words.back() += word;
      singles = 0;
      continue;
    }
    words.push_back(word);
    singles = kana && word.size() == 1 ? singles + 1 : 0;
    if (singles == 3) {
      const std::u32string merged =
          words[words.size() - 3] + words[words.size() - 2] + words.back();
      words.resize(words.size() - 3);
      words.push_back(merged);
    } else if (singles > 3) {
      words[words.size() - 2] += words.back();
      words.pop_back();
    }
  }
  return words;
}

// Transliterating a word costs some microseconds and most words come again.
const std::u32string& to_letters(const Japanese& japanese, const std::u32string& word) {
  constexpr size_t most_known = 8192;
  thread_local std::unordered_map<std::u32string, std::u32string> known;
  if (known.size() >= most_known) known.clear();
  const auto [place, is_new] = known.try_emplace(word);
  if (is_new) place->second = transliterated(japanese, word);
  return place->second;
}

bool is_opening(char32_t c) { return c == U'(' || c == U'['; }

}  // namespace

std::u32string romanise_japanese(std::u32string_view text) {
  thread_local const Japanese japanese;
  std::u32string marked;
  for (const char32_t c : text) marked.push_back(half_width_mark(c));
  std::u32string result;
  bool quoted = false;
  for (const std::u32string& word : words_of(japanese, marked)) {
    const char32_t first = word[0];
    if (is_python_space(first)) {
      if (!result.empty() && result.back() != U' ') result.push_back(U' ');
      continue;
    }
    const bool opens = is_opening(first) || (first == U'"' && !quoted);
    const bool apart = is_python_word(first) || opens;
    const bool after_opening =
        !result.empty() && (is_opening(result.back()) || (result.back() == U'"' && quoted));
    if (first == U'"') quoted = !quoted;
    if (apart && !result.empty() && result.back() != U' ' && !after_opening) {
      result.push_back(U' ');
    } else if (!apart && !result.empty() && result.back() == U' ') {
      result.pop_back();
    }
    result += to_letters(japanese, word);
  }
  return collapse_spaces(result);
}

}  // namespace tandem
