// The text of a clip as a model reads it: cleaned as it is spoken, then as ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace tandem {

// In a language we do not know the text stays as it is. Throws Error(data).
std::string spoken_text(const std::string& text, std::string_view language);

// Without a tokenizer each character is its code point. A vocabulary with [SPACE] is one of XTTS,
// whose text begins with its language.
std::vector<int32_t> clip_ids(std::string_view spoken, std::string_view language,
                              const Tokenizer* tokenizer);

}  // namespace tandem
