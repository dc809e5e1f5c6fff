// Symbols in words: "%" is " percent ". Spaces are not collapsed.
#pragma once

#include <string>
#include <string_view>

#include "text/clean.h"
#include "text/language_id.h"

namespace tandem {

// Style best also says the euro sign, which Coqui leaves as it is.
std::u32string expand_symbols(std::u32string_view text, LanguageId language, CleanStyle style);

}  // namespace tandem
