// Chinese readings where ICU's differ from the usual one: single characters, and words whose
// characters are read otherwise in them.
#pragma once

#include <string_view>

namespace tandem {

struct Phrase {
  std::u32string_view characters;
  std::u32string_view reading;  // "yin2hang2"
};

// Nothing where ICU's reading is the usual one.
std::u32string_view usual_reading(char32_t character);
// The longest known word that `text` starts with, or nullptr.
const Phrase* phrase_at(std::u32string_view text);

}  // namespace tandem
