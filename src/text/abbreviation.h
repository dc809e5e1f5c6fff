// Abbreviations in full: "dr." is "doctor". The text is lower case.
#pragma once

#include <string>

#include "text/language_id.h"

namespace tandem {

std::u32string expand_abbreviations(std::u32string text, LanguageId language);

}  // namespace tandem
