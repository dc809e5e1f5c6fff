#include "text/token_unicode.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace tandem {
namespace {

struct Range {
  char32_t first, last;
};

// Word characters of Unicode 15.1 and 16.0, from DerivedCoreProperties.txt; an ICU that knows only
// 15.0 has them as unassigned.
constexpr Range newer_word[] = {
    {0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},
    {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0}, {0x113C2, 0x113C2},
    {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2},
    {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A},
    {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C}, {0x16D70, 0x16D79},
    {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9}, {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D}};

bool in_newer_word(char32_t code) {
  const auto* range =
      std::lower_bound(std::begin(newer_word), std::end(newer_word), code,
                       [](const Range& left, char32_t value) { return left.last < value; });
  return range != std::end(newer_word) && range->first <= code;
}

bool is_word_by_properties(char32_t code) {
  const auto c = static_cast<UChar32>(code);
  constexpr uint32_t word_categories = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) || (U_GET_GC_MASK(c) & word_categories) != 0 ||
         u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) || in_newer_word(code);
}

// The Latin, Greek and Cyrillic blocks, where most characters of most texts are.
constexpr char32_t table_end = 0x530;
using ClassTable = std::array<bool, table_end>;

const ClassTable& word_table() {
  static const ClassTable table = [] {
    ClassTable filled{};
    for (char32_t code = 0; code < table_end; ++code) filled[code] = is_word_by_properties(code);
    return filled;
  }();
  return table;
}

bool continues(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

uint32_t low_bits(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]) & 0x3FU;
}

}  // namespace

Character character_at(std::string_view text, size_t at) {
  constexpr Character bad{0xFFFD, 1};
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4 || !continues(text, at + 1)) return bad;
  if (lead < 0xE0) return {(lead & 0x1FU) << 6 | low_bits(text, at + 1), 2};
  if (!continues(text, at + 2)) return bad;
  if (lead < 0xF0) {
    const uint32_t code =
        (lead & 0x0FU) << 12 | low_bits(text, at + 1) << 6 | low_bits(text, at + 2);
    if (code < 0x800 || (code >= 0xD800 && code < 0xE000)) return bad;
    return {code, 3};
  }
  if (!continues(text, at + 3)) return bad;
  const uint32_t code = (lead & 0x07U) << 18 | low_bits(text, at + 1) << 12 |
                        low_bits(text, at + 2) << 6 | low_bits(text, at + 3);
  if (code < 0x10000 || code > 0x10FFFF) return bad;
  return {code, 4};
}

Character character_before(std::string_view text, size_t end) {
  size_t start = end - 1;
  while (start > 0 && end - start < 4 && continues(text, start)) --start;
  const Character found = character_at(text, start);
  if (start + found.length == end) return found;
  return {0xFFFD, 1};
}

void append_character(std::string& text, char32_t code) {
  const auto byte = [&text](char32_t value) { text.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += character_at(text, at).length) ++count;
  return count;
}

std::string_view valid_utf8(std::string_view text, std::string& storage) {
  size_t at = 0;
  const auto is_bad = [&](const Character& c) { return c.code == 0xFFFD && c.length == 1; };
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (is_bad(c)) break;
    at += c.length;
  }
  if (at == text.size()) return text;
  storage.assign(text.substr(0, at));
  while (at < text.size()) {
    const Character c = character_at(text, at);
    append_character(storage, c.code);
    at += c.length;
  }
  return storage;
}

bool is_word(char32_t code) {
  static const ClassTable& table = word_table();
  return code < table_end ? table[code] : is_word_by_properties(code);
}

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13);
  return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_WHITE_SPACE);
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) return code > 0x20 && code < 0x7F && !u_isalnum(static_cast<UChar32>(code));
  return (U_GET_GC_MASK(static_cast<UChar32>(code)) & U_GC_P_MASK) != 0;
}

}  // namespace tandem
