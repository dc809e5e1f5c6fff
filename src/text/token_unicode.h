// Characters as the tokenizers see them: UTF-8 steps that survive any bytes, the classes behind
// `\w` and `\s`, and grapheme clusters. All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

struct Character {
  char32_t code = 0;
  uint32_t length = 1;  // bytes
};

// The character at `at`, which must be inside `text`. A byte that starts no character is U+FFFD of
// one byte.
Character character_at(std::string_view text, size_t at);
Character character_before(std::string_view text, size_t end);
void append_character(std::string& text, char32_t code);
size_t count_characters(std::string_view text);

// `text` itself when it is UTF-8, else a copy in `storage` with each bad byte as U+FFFD.
std::string_view valid_utf8(std::string_view text, std::string& storage);

// `\w` and `\s` of a Unicode-aware regular expression (UTS 18, annex C).
bool is_word(char32_t code);
bool is_space(char32_t code);
bool is_punctuation(char32_t code);

// Where the extended grapheme cluster (UAX 29) that starts at `at` ends.
size_t grapheme_end(std::string_view text, size_t at);

}  // namespace tandem
