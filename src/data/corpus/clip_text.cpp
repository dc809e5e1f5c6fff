#include "data/corpus/clip_text.h"

#include <algorithm>

#include "data/corpus/clip_ids.h"
#include "tandem/error.h"
#include "text/clean.h"
#include "util/text.h"

namespace tandem {
namespace {

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

// Id 0 is a vocabulary's stop or padding: no text yields it.
bool is_unknown(int32_t id, const Tokenizer& tokenizer) {
  return id == tokenizer.unknown_id() || id == 0;
}

std::string unknown_characters(const std::string& text, const Tokenizer& tokenizer) {
  std::vector<std::string> unknown;
  for (const std::string_view character : characters(text)) {
    const std::vector<int32_t> ids = tokenizer.encode(character);
    const bool missing =
        std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return is_unknown(id, tokenizer); });
    const std::string name = "`" + std::string(character) + "`";
    const bool listed = std::find(unknown.begin(), unknown.end(), name) != unknown.end();
    if (missing && !listed && unknown.size() < 8) unknown.push_back(name);
  }
  return unknown.empty() ? "" : "the vocabulary has no " + join(unknown, ", ");
}

}  // namespace

void clean_clip(ScannedClip& scanned) {
  Clip& clip = scanned.clip;
  try {
    clip.text = trim(to_nfc(clip.text));
    scanned.cleaned_text = spoken_text(clip.text, clip.language);
  } catch (const Error& error) {
    if (!scanned.kept()) return;
    scanned.reason = DropReason::no_text;
    scanned.detail = error.what();
  }
}

void count_tokens(ScannedClip& scanned, const Tokenizer* tokenizer) {
  const std::vector<int32_t> ids = clip_ids(scanned.cleaned_text, scanned.clip.language, tokenizer);
  scanned.clip.tokens = static_cast<int32_t>(ids.size());
  if (!tokenizer) return;
  scanned.unknown_tokens =
      std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return is_unknown(id, *tokenizer); });
  if (scanned.unknown_tokens && scanned.kept()) {
    scanned.detail = unknown_characters(scanned.cleaned_text, *tokenizer);
  }
}

}  // namespace tandem
