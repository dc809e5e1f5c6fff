// A vocabulary for a corpus that was prepared without one.
#pragma once

#include <string>

namespace tandem {

// Learns it from the texts of an index, which stays as it is, and writes `vocab.json` beside it: of
// `tokens` tokens, or fewer where the texts give no more. Texts without a language are read in
// `language`. Gives the file's path. Throws Error(data) when there are no texts.
std::string learn_vocabulary(const std::string& index, const std::string& language, int tokens);

}  // namespace tandem
