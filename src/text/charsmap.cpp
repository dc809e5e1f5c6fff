#include "text/charsmap.h"

#include <algorithm>

#include "text/token_unicode.h"

namespace tandem {
namespace {

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// A unit of the array: bits 0-7 and 31 label, 8 "has a value", 9-30 offset to the children.
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_in(uint32_t unit) { return unit & 0x7FFFFFFFU; }
uint32_t label_in(uint32_t unit) { return unit & 0x800000FFU; }
uint32_t offset_in(uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0, count = 0;
  for (const char c : text) {
    const int value = sextet(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count & 0xFF));
    }
  }
  if ((bits & ((1U << count) - 1)) != 0) return std::nullopt;
  return bytes;
}

Charsmap::Charsmap(const JsonPlace& place) {
  const std::optional<std::string> bytes = decode_base64(place.text());
  if (!bytes) place.expected("a character map in base64");
  const std::string_view blob = *bytes;
  if (blob.size() < 4) place.expected("a character map of four bytes at least");
  const size_t units = little_endian(blob, 0) / 4;
  if (units == 0 || units > (blob.size() - 4) / 4) {
    place.expected("a character map whose first four bytes are the size of its trie");
  }
  units_.resize(units);
  for (size_t i = 0; i < units; ++i) units_[i] = little_endian(blob, 4 + 4 * i);
  replacements_ = blob.substr(4 + 4 * units);
  std::string storage;
  if (valid_utf8(replacements_, storage).data() != replacements_.data()) {
    place.expected("a character map with replacements in UTF-8");
  }
  plain_.resize(128);
  for (size_t c = 0; c < 128; ++c) {
    const char one = static_cast<char>(c);
    plain_[c] = !shortest({&one, 1});
  }
}

std::optional<std::string_view> Charsmap::shortest(std::string_view part) const {
  size_t node = offset_in(units_[0]);
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_in(units_[node]) != byte) return std::nullopt;
    const uint32_t unit = units_[node];
    node ^= offset_in(unit);
    if (!has_value(unit)) continue;
    if (node >= units_.size()) return std::nullopt;
    const size_t begin = value_in(units_[node]);
    if (begin > replacements_.size()) return std::nullopt;
    const size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    return std::string_view(replacements_).substr(begin, end - begin);
  }
  return std::nullopt;
}

void Charsmap::apply(std::string_view text, std::string& out, size_t& origin) const {
  out.clear();
  bool first = true;
  const bool at_origin = origin > 0;
  origin = 0;
  const auto put = [&](std::string_view old_part, std::string_view new_part) {
    if (first && !new_part.empty()) {
      const bool grew_from_one = character_at(old_part, 0).length == old_part.size();
      origin = !at_origin ? 0 : grew_from_one ? new_part.size() : character_at(new_part, 0).length;
      first = false;
    }
    out += new_part;
  };
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool alone = byte < 0x80 && byte != '\r' &&
                       (at + 1 == text.size() || static_cast<unsigned char>(text[at + 1]) < 0xCC);
    if (alone && plain_[byte]) {
      put(text.substr(at, 1), text.substr(at, 1));
      ++at;
      continue;
    }
    const size_t end = grapheme_end(text, at);
    const std::string_view cluster = text.substr(at, end - at);
    if (const auto mapped = cluster.size() < 6 ? shortest(cluster) : std::nullopt) {
      put(cluster, *mapped);
    } else {
      for (size_t i = 0; i < cluster.size();) {
        const std::string_view one = cluster.substr(i, character_at(cluster, i).length);
        put(one, shortest(one).value_or(one));
        i += one.size();
      }
    }
    at = end;
  }
}

}  // namespace tandem
