#include <array>
#include <string>

#include "tandem/error.h"
#include "text/clean.h"
#include "text/clean_characters.h"
#include "text/language_id.h"

namespace tandem {

namespace {

bool is_terminator(char32_t c) {
  switch (c) {
    case U'.':
    case U'!':
    case U'?':
    case U'…':
    case U'。':
    case U'！':
    case U'？':
    case U'．':
    case U'｡':
    case U'।':
    case U'॥':
    case U'؟':
    case U'۔': return true;
    default: return false;
  }
}

// Ends a sentence though no space follows.
bool is_east_asian(char32_t c) {
  return c == U'。' || c == U'！' || c == U'？' || c == U'．' || c == U'｡';
}

bool closes(char32_t c) {
  constexpr std::u32string_view marks = U"\"')]}»”’」』）】》›";
  return marks.find(c) != std::u32string_view::npos;
}

// Words before a full stop that ends no sentence, in lower case.
constexpr std::u32string_view abbreviations[] = {
    U"mr",  U"mrs", U"ms",  U"dr",   U"prof", U"st",   U"jr",   U"sr",  U"sra", U"dra",  U"co",
    U"ltd", U"inc", U"vs",  U"etc",  U"e.g",  U"i.e",  U"no",   U"gen", U"col", U"capt", U"lt",
    U"sgt", U"rev", U"hon", U"maj",  U"mme",  U"mlle", U"fr",   U"hr",  U"z.b", U"bzw",  U"ca",
    U"d.h", U"nr",  U"str", U"usw",  U"sig",  U"dott", U"ing",  U"p",   U"m",   U"sw",   U"np",
    U"tzn", U"tj",  U"dhr", U"mevr", U"jhr",  U"bijv", U"b",    U"byk", U"vb",  U"т.е",  U"т.д",
    U"т.п", U"г",   U"ул",  U"им",   U"стр",  U"napr", U"např", U"tzv", U"nőv", U"pl",   U"ún"};

bool is_abbreviation(std::u32string_view word) {
  if (word.empty()) return false;
  // "J. Smith"
  if (word.size() == 1 && is_upper(word[0])) return true;
  const std::u32string lowered = to_lower(word);
  for (const std::u32string_view known : abbreviations) {
    if (lowered == known) return true;
  }
  return false;
}

// Whether the terminator at `at`, with all that belongs to it ending at `end`, ends a sentence.
bool ends_sentence(std::u32string_view text, size_t at, size_t end) {
  if (end >= text.size()) return true;
  if (is_east_asian(text[at])) return true;
  if (!is_python_space(text[end])) return false;
  size_t next = end;
  while (next < text.size() && is_python_space(text[next])) ++next;
  if (next == text.size()) return true;
  if (text[at] == U'…' || (at > 0 && text[at] == U'.' && text[at - 1] == U'.')) {
    return !is_lower(text[next]);
  }
  if (text[at] != U'.') return true;
  if (is_lower(text[next])) return false;  // "approx. five", "5. května"
  size_t word = at;
  while (word > 0 && (is_python_word(text[word - 1]) || text[word - 1] == U'.')) --word;
  return !is_abbreviation(text.substr(word, at - word));
}

std::u32string_view trimmed(std::u32string_view text) {
  while (!text.empty() && is_python_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_python_space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::u32string_view> sentences_of(std::u32string_view text) {
  std::vector<std::u32string_view> sentences;
  size_t start = 0;
  const auto take = [&](size_t end) {
    const std::u32string_view sentence = trimmed(text.substr(start, end - start));
    if (!sentence.empty()) sentences.push_back(sentence);
    start = end;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == U'\n') {
      take(at);
      continue;
    }
    if (!is_terminator(text[at])) continue;
    size_t last = at;
    while (last + 1 < text.size() && is_terminator(text[last + 1])) ++last;
    size_t end = last + 1;
    while (end < text.size() && closes(text[end])) ++end;
    if (ends_sentence(text, last, end)) take(end);
    at = end - 1;
  }
  take(text.size());
  return sentences;
}

// Pieces of one sentence, cut at its last space before the limit; a longer word is cut through.
void cut(std::u32string_view sentence, size_t limit, std::vector<std::u32string>& pieces) {
  while (sentence.size() > limit) {
    size_t end = limit;
    while (end > 0 && !is_python_space(sentence[end])) --end;
    if (end == 0) end = limit;
    pieces.emplace_back(trimmed(sentence.substr(0, end)));
    sentence = trimmed(sentence.substr(end));
  }
  if (!sentence.empty()) pieces.emplace_back(sentence);
}

}  // namespace

std::vector<std::string> split_text(std::string_view text, std::string_view language, int limit) {
  const LanguageId id = language_id(language);
  if (limit < 1) {
    throw Error(ErrorKind::data, "a text cannot be split into pieces of " + std::to_string(limit) +
                                     " characters: at least 1 is needed.");
  }
  const auto most = static_cast<size_t>(limit);
  const bool spaced = id != LanguageId::zh && id != LanguageId::ja;
  const std::u32string points = decode_utf8(text);
  std::vector<std::u32string> pieces;
  bool open = false;  // the last piece may take more
  for (const std::u32string_view sentence : sentences_of(points)) {
    if (sentence.size() > most) {
      cut(sentence, most, pieces);
      open = false;
      continue;
    }
    const size_t space = spaced ? 1 : 0;
    if (open && pieces.back().size() + space + sentence.size() <= most) {
      pieces.back().append(space, U' ').append(sentence);
    } else {
      pieces.emplace_back(sentence);
    }
    open = true;
  }
  std::vector<std::string> result;
  result.reserve(pieces.size());
  for (const std::u32string& piece : pieces) result.push_back(encode_utf8(piece));
  return result;
}

}  // namespace tandem
