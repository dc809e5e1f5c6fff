#include "text/clean.h"

#include "text/abbreviation.h"
#include "text/clean_characters.h"
#include "text/language_id.h"
#include "text/number_expand.h"
#include "text/romanise.h"
#include "text/symbol.h"

namespace tandem {

namespace {

std::u32string clean_as_coqui(std::u32string text, LanguageId language) {
  std::erase(text, U'"');
  if (language == LanguageId::tr) {
    for (char32_t& c : text) {
      if (c == U'İ') c = U'i';
    }
  }
  text = to_lower(text);
  text = language == LanguageId::zh ? chinese_numbers(text, CleanStyle::coqui)
                                    : expand_numbers_as_coqui(std::move(text), language);
  text = expand_abbreviations(std::move(text), language);
  return collapse_spaces(expand_symbols(text, language, CleanStyle::coqui));
}

std::u32string clean_best(std::u32string text, LanguageId language) {
  std::erase(text, U'"');
  const bool east = language == LanguageId::zh || language == LanguageId::ja;
  text = east ? chinese_numbers(text, CleanStyle::best) : expand_numbers(std::move(text), language);
  text = to_lower(text, language == LanguageId::tr);
  text = expand_abbreviations(std::move(text), language);
  return collapse_spaces(expand_symbols(text, language, CleanStyle::best));
}

}  // namespace

std::string clean_text(std::string_view text, std::string_view language, CleanStyle style) {
  const LanguageId id = language_id(language);
  std::u32string points = decode_utf8(text);
  const bool coqui = style == CleanStyle::coqui;
  if (id == LanguageId::ja) {
    // Coqui gives Japanese to its romaji converter as it is.
    return encode_utf8(romanise_japanese(coqui ? points : clean_best(std::move(points), id)));
  }
  points = coqui ? clean_as_coqui(std::move(points), id) : clean_best(std::move(points), id);
  if (id == LanguageId::zh) points = romanise_chinese(points);
  if (id == LanguageId::ko) points = romanise_korean(points);
  return encode_utf8(points);
}

}  // namespace tandem
