// The precompiled character map of a sentencepiece model (`precompiled_charsmap`): a double-array
// trie over bytes whose values point into a block of zero-ended replacements. Immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_json.h"

namespace tandem {

class Charsmap {
 public:
  // A string in base64 at `place`.
  explicit Charsmap(const JsonPlace& place);

  // What the shortest mapped beginning of `part` becomes; nothing when none is mapped.
  std::optional<std::string_view> shortest(std::string_view part) const;

  // The text with every grapheme cluster under six bytes, else every character, replaced by
  // `shortest` of it: what follows a mapped beginning inside its cluster is dropped, as
  // Hugging Face's tokenizers do it. `origin`: bytes that come from the first character.
  void apply(std::string_view text, std::string& out, size_t& origin) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
  std::vector<bool> plain_;  // by ASCII character: not mapped when alone
};

// Strict: no line breaks, padded. Nothing when it is no base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace tandem
