// The text of a clip as training will see it: cleaned, and counted in ids.
#pragma once

#include "data/corpus/scan.h"

namespace tandem {

// Fills `cleaned_text`, and brings `clip.text` into Unicode's composed form. Text in a language
// that is not known is left as it is.
void clean_clip(ScannedClip& scanned);

// Fills `clip.tokens` and `unknown_tokens`; characters when there is no tokenizer.
void count_tokens(ScannedClip& scanned, const Tokenizer* tokenizer);

}  // namespace tandem
