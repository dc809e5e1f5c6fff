#include "data/corpus/clip_ids.h"

#include <algorithm>

#include "text/clean.h"

namespace tandem {
namespace {

// The text is valid UTF-8: `prepare` saw to that.
std::vector<int32_t> code_points(std::string_view text) {
  std::vector<int32_t> out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80 && !out.empty()) {
      out.back() = (out.back() << 6) | (byte & 0x3F);
    } else {
      const int lead = byte < 0x80 ? 0x7F : byte < 0xE0 ? 0x1F : byte < 0xF0 ? 0x0F : 0x07;
      out.push_back(byte & lead);
    }
  }
  return out;
}

}  // namespace

std::string spoken_text(const std::string& text, std::string_view language) {
  const auto& all = languages();
  const bool known =
      std::any_of(all.begin(), all.end(), [&](const Language& l) { return l.code == language; });
  return known ? clean_text(text, language) : text;
}

std::vector<int32_t> clip_ids(std::string_view spoken, std::string_view language,
                              const Tokenizer* tokenizer) {
  if (!tokenizer) return code_points(spoken);
  const bool xtts = !language.empty() && tokenizer->id_of("[SPACE]") >= 0;
  return tokenizer->encode(xtts ? xtts_input(spoken, language) : std::string(spoken));
}

}  // namespace tandem
