// Grapheme clusters by the rules of UAX 29 over ICU's properties: with GB9c, which ICU's own break
// iterator has only from 74 on, and without an iterator object for every text.
#include <unicode/uchar.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "text/token_unicode.h"

namespace tandem {
namespace {

// Marks of Unicode 15.1 and 16.0 that an ICU of 15.0 has as unassigned, from
// GraphemeBreakProperty.txt.
bool is_newer_mark(char32_t code) {
  if (code == 0x897) return true;
  if (code < 0x10D69) return false;
  static constexpr std::pair<char32_t, char32_t> ranges[] = {
      {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFC}, {0x113B8, 0x113C0}, {0x113C2, 0x113C2},
      {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0}, {0x113D2, 0x113D2},
      {0x113E1, 0x113E2}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F}, {0x1E5EE, 0x1E5EF}};
  return std::any_of(std::begin(ranges), std::end(ranges), [code](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

UGraphemeClusterBreak break_class(char32_t code) {
  if (is_newer_mark(code)) return U_GCB_EXTEND;
  if (code == 0x113D1) return U_GCB_PREPEND;  // of Unicode 16.0 too
  return static_cast<UGraphemeClusterBreak>(
      u_getIntPropertyValue(static_cast<UChar32>(code), UCHAR_GRAPHEME_CLUSTER_BREAK));
}

bool is_pictograph(char32_t code) {
  return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_EXTENDED_PICTOGRAPHIC);
}

// Indic_Conjunct_Break=Linker and =Consonant of Unicode 15.1: the viramas and consonants of
// Devanagari, Bengali, Gujarati, Oriya, Telugu and Malayalam.
bool is_linker(char32_t code) {
  return code == 0x94D || code == 0x9CD || code == 0xACD || code == 0xB4D || code == 0xC4D ||
         code == 0xD4D;
}

bool is_conjunct_consonant(char32_t code) {
  if (code < 0x900 || code >= 0xD80) return false;
  const bool gurmukhi = code >= 0xA00 && code < 0xA80, tamil = code >= 0xB80 && code < 0xC00,
             kannada = code >= 0xC80 && code < 0xD00;
  if (gurmukhi || tamil || kannada) return false;
  return u_getIntPropertyValue(static_cast<UChar32>(code), UCHAR_INDIC_SYLLABIC_CATEGORY) ==
         U_INSC_CONSONANT;
}

bool breaks_everywhere(UGraphemeClusterBreak kind) {
  return kind == U_GCB_CONTROL || kind == U_GCB_CR || kind == U_GCB_LF;
}

bool joins_hangul(UGraphemeClusterBreak left, UGraphemeClusterBreak right) {
  switch (left) {
    case U_GCB_L:
      return right == U_GCB_L || right == U_GCB_V || right == U_GCB_LV || right == U_GCB_LVT;
    case U_GCB_LV:
    case U_GCB_V: return right == U_GCB_V || right == U_GCB_T;
    case U_GCB_LVT:
    case U_GCB_T: return right == U_GCB_T;
    default: return false;
  }
}

}  // namespace

size_t grapheme_end(std::string_view text, size_t at) {
  Character now = character_at(text, at);
  size_t end = at + now.length;
  if (end == text.size()) return end;
  // Nothing below the first combining mark joins what stands before it, but for a line feed.
  if (now.code < 0x300 && now.code != '\r' && static_cast<unsigned char>(text[end]) < 0xCC) {
    return end;
  }
  UGraphemeClusterBreak left = break_class(now.code);
  bool pictograph = is_pictograph(now.code);  // of the form: pictograph, extends
  bool pictograph_joined = false;             // the same and a joiner
  bool conjunct = is_conjunct_consonant(now.code), linked = false;
  size_t flags = left == U_GCB_REGIONAL_INDICATOR ? 1 : 0;

  while (end < text.size()) {
    now = character_at(text, end);
    const UGraphemeClusterBreak right = break_class(now.code);
    if (left == U_GCB_CR && right == U_GCB_LF) return end + now.length;
    if (breaks_everywhere(left) || breaks_everywhere(right)) return end;
    const bool extends = right == U_GCB_EXTEND || right == U_GCB_ZWJ;
    const bool next_pictograph = is_pictograph(now.code);
    const bool next_consonant = is_conjunct_consonant(now.code);
    const bool joins = extends || right == U_GCB_SPACING_MARK || left == U_GCB_PREPEND ||
                       joins_hangul(left, right) || (conjunct && linked && next_consonant) ||
                       (pictograph_joined && next_pictograph) ||
                       (flags % 2 == 1 && right == U_GCB_REGIONAL_INDICATOR);
    if (!joins) return end;
    flags = right == U_GCB_REGIONAL_INDICATOR ? flags + 1 : 0;
    pictograph_joined = pictograph && right == U_GCB_ZWJ;
    pictograph = next_pictograph || (pictograph && right == U_GCB_EXTEND);
    if (next_consonant) {
      conjunct = true;
      linked = false;
    } else {
      linked = linked || is_linker(now.code);
      conjunct = conjunct && extends && now.code != 0x200C;
    }
    left = right;
    end += now.length;
  }
  return end;
}

}  // namespace tandem
