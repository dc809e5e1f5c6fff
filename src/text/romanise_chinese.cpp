#include <unicode/normalizer2.h>
#include <unicode/translit.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <memory>
#include <unordered_map>

#include "tandem/error.h"
#include "text/romanise.h"
#include "text/romanise_readings.h"

namespace tandem {

namespace {

std::unique_ptr<icu::Transliterator> make_transliterator() {
  UErrorCode status = U_ZERO_ERROR;
  // Letters and tone marks apart.
  std::unique_ptr<icu::Transliterator> made(icu::Transliterator::createInstance(
      icu::UnicodeString(u"Han-Latin; NFD"), UTRANS_FORWARD, status));
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::internal,
                std::string("ICU has no Han-Latin transliterator: ") + u_errorName(status) + ".");
  }
  return made;
}

// "nǚ" is nv3, "de" is de5.
std::u32string with_tone_digit(const icu::UnicodeString& marked) {
  std::u32string letters;
  char32_t tone = U'5';
  for (int32_t i = 0; i < marked.length(); ++i) {
    switch (marked[i]) {
      case 0x304: tone = U'1'; break;
      case 0x301: tone = U'2'; break;
      case 0x30c: tone = U'3'; break;
      case 0x300: tone = U'4'; break;
      case 0x308: letters.back() = U'v'; break;
      case 0x302:  // "ê", a rare exclamation
        letters += U"h";
        break;
      default:
        if (marked[i] > u' ') letters.push_back(marked[i]);
    }
  }
  letters.push_back(tone);
  return letters;
}

const std::u32string& reading(char32_t character) {
  thread_local const std::unique_ptr<icu::Transliterator> transliterator = make_transliterator();
  thread_local std::unordered_map<char32_t, std::u32string> known;
  const auto [place, is_new] = known.try_emplace(character);
  if (!is_new) return place->second;
  const std::u32string_view usual = usual_reading(character);
  if (!usual.empty()) {
    place->second = usual;
    return place->second;
  }
  icu::UnicodeString text(static_cast<UChar32>(character));
  const icu::UnicodeString before = text;
  transliterator->transliterate(text);
  place->second = text == before ? std::u32string(1, character) : with_tone_digit(text);
  return place->second;
}

bool is_han(char32_t c) {
  if (c == U'〇') return true;
  if (c < 0x3400 || c == 0x3005) return false;
  UErrorCode status = U_ZERO_ERROR;
  return uscript_getScript(static_cast<UChar32>(c), &status) == USCRIPT_HAN;
}

}  // namespace

std::u32string romanise_chinese(std::u32string_view text) {
  std::u32string result;
  result.reserve(text.size() * 4);
  for (size_t at = 0; at < text.size();) {
    if (!is_han(text[at])) {
      result.push_back(text[at++]);
      continue;
    }
    if (const Phrase* phrase = phrase_at(text.substr(at)); phrase != nullptr) {
      result += phrase->reading;
      at += phrase->characters.size();
    } else {
      result += reading(text[at++]);
    }
  }
  return result;
}

}  // namespace tandem
