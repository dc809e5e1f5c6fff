// Text as code points, and the classes of characters Python's `re` and `str` know.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Strict: throws Error(data) with the byte's position for anything that is no UTF-8.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

bool is_python_space(char32_t c);   // \s as Python has it
bool is_python_word(char32_t c);    // \w: letters and numbers of any script and _; no marks
bool is_decimal_digit(char32_t c);  // \d: of any script
inline bool is_ascii_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_upper(char32_t c);
bool is_lower(char32_t c);

// Where a word begins or ends: between `before` and `after`, 0 standing for the text's end.
inline bool is_boundary(char32_t before, char32_t after) {
  return (before != 0 && is_python_word(before)) != (after != 0 && is_python_word(after));
}
inline char32_t at_or_end(std::u32string_view text, size_t at) {
  return at < text.size() ? text[at] : 0;
}

// Lower case of whole strings (final sigma included). `turkish`: I is ı and İ is i.
std::u32string to_lower(std::u32string_view text, bool turkish = false);

// Runs of spaces become one space, none at the ends.
std::u32string collapse_spaces(std::u32string_view text);

}  // namespace tandem
