#include "text/clean_characters.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "tandem/error.h"

namespace tandem {

namespace {

// The length of the character that starts at `at`, 0 when none does. No surrogates, nothing longer
// than it needs to be.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const bool allowed = lead == 0xe0 ? second >= 0xa0 : lead == 0xed ? second <= 0x9f : true;
    return allowed && follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const bool allowed = lead == 0xf0 ? second >= 0x90 : lead == 0xf4 ? second <= 0x8f : true;
    return allowed && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const auto lead = static_cast<unsigned char>(text[at]);
    if (length == 0) {
      constexpr const char* digits = "0123456789abcdef";
      throw Error(ErrorKind::data, "the text is not UTF-8: byte " + std::to_string(at) + " is 0x" +
                                       digits[lead >> 4] + digits[lead & 15] +
                                       ", which starts no character.")
          .hint("save the file as UTF-8");
    }
    char32_t point = length == 1 ? lead : lead & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
      point = (point << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
    }
    points.push_back(point);
    at += length;
  }
  return points;
}

std::string encode_utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size() + text.size() / 2);
  for (const char32_t point : text) {
    if (point < 0x80) {
      bytes.push_back(static_cast<char>(point));
      continue;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    constexpr char32_t leads[] = {0, 0xc0, 0xe0, 0xf0};
    bytes.push_back(static_cast<char>(leads[more] | (point >> (6 * more))));
    for (int i = more - 1; i >= 0; --i) {
      bytes.push_back(static_cast<char>(0x80u | ((point >> (6 * i)) & 0x3fu)));
    }
  }
  return bytes;
}

bool is_python_space(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_python_word(char32_t c) {
  if (c < 0x80) {
    return (c >= U'0' && c <= U'9') || (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') ||
           c == U'_';
  }
  const auto point = static_cast<UChar32>(c);
  return u_isalpha(point) || u_getIntPropertyValue(point, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool is_decimal_digit(char32_t c) {
  return c < 0x80 ? is_ascii_digit(c) : u_isdigit(static_cast<UChar32>(c)) != 0;
}

bool is_upper(char32_t c) { return u_isupper(static_cast<UChar32>(c)) != 0; }
bool is_lower(char32_t c) { return u_islower(static_cast<UChar32>(c)) != 0; }

std::u32string to_lower(std::u32string_view text, bool turkish) {
  std::u32string lowered(text);
  bool ascii = true;
  for (char32_t& c : lowered) {
    if (c >= 0x80) ascii = false;
    if (c >= U'A' && c <= U'Z' && !(turkish && c == U'I')) c += U'a' - U'A';
  }
  if (ascii && !turkish) return lowered;
  // From the text as it was: whether a sigma is final depends on the letters around it.
  icu::UnicodeString unicode = icu::UnicodeString::fromUTF32(
      reinterpret_cast<const UChar32*>(text.data()), static_cast<int32_t>(text.size()));
  unicode.toLower(turkish ? icu::Locale("tr") : icu::Locale::getRoot());
  std::u32string result;
  result.reserve(text.size());
  for (int32_t at = 0; at < unicode.length(); at = unicode.moveIndex32(at, 1)) {
    result.push_back(static_cast<char32_t>(unicode.char32At(at)));
  }
  return result;
}

std::u32string collapse_spaces(std::u32string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (const char32_t c : text) {
    if (!is_python_space(c)) {
      result.push_back(c);
    } else if (!result.empty() && result.back() != U' ') {
      result.push_back(U' ');
    }
  }
  if (!result.empty() && result.back() == U' ') result.pop_back();
  return result;
}

}  // namespace tandem
