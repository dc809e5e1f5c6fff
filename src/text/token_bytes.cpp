#include "text/token_bytes.h"

#include <fmt/format.h>
#include <unicode/uchar.h>

#include <unordered_map>

#include "text/pretokenize.h"
#include "text/token_unicode.h"

namespace tandem {
namespace {

// Printable bytes of Latin-1 are themselves, the others follow from U+0100 on.
std::array<char32_t, 256> make_codes() {
  std::array<char32_t, 256> codes{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    codes[byte] = printable ? byte : next++;
  }
  return codes;
}

enum class Kind { space, letter, number, other };

Kind kind_of(char32_t code) {
  if (is_space(code)) return Kind::space;
  const uint32_t category = U_GET_GC_MASK(static_cast<UChar32>(code));
  if ((category & U_GC_L_MASK) != 0) return Kind::letter;
  return (category & U_GC_N_MASK) != 0 ? Kind::number : Kind::other;
}

size_t run_end(std::string_view text, size_t at, Kind kind) {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (kind_of(c.code) != kind) break;
    at += c.length;
  }
  return at;
}

// Where the match of GPT-2's expression that starts at `at` ends:
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t match_end(std::string_view text, size_t at) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(at).starts_with(ending)) return at + ending.size();
  }
  const Character first = character_at(text, at);
  const size_t after = at + first.length;
  if (first.code == ' ' && after < text.size()) {
    const Kind next = kind_of(character_at(text, after).code);
    if (next != Kind::space) return run_end(text, after, next);
  }
  const Kind kind = kind_of(first.code);
  const size_t end = run_end(text, at, kind);
  if (kind != Kind::space || end == text.size()) return end;
  const size_t without_last = end - character_before(text, end).length;
  return without_last > at ? without_last : end;
}

class ByteLevelStep : public PretokenizeStep {
 public:
  explicit ByteLevelStep(const JsonPlace& place)
      : prefix_(place.member("add_prefix_space").truth()),
        split_(place.truth_of("use_regex", true)) {}

  void apply(const Words& in, Words& out) const override {
    for (const Words::Range& range : in.ranges) {
      std::string word(in.word(range));
      size_t origin = range.origin;
      if (prefix_ && !word.starts_with(' ')) {
        word.insert(0, 1, ' ');
        if (origin > 0) ++origin;
      }
      for (size_t at = 0; at < word.size();) {
        const size_t end = split_ ? match_end(word, at) : word.size();
        const size_t begin = out.text.size();
        for (size_t i = at; i < end; ++i) {
          out.text += byte_characters()[static_cast<unsigned char>(word[i])];
        }
        out.ranges.push_back({begin, out.text.size(), at < origin ? out.text.size() - begin : 0});
        at = end;
      }
    }
  }

 private:
  bool prefix_, split_;
};

}  // namespace

const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> characters = [] {
    std::array<std::string, 256> made;
    const std::array<char32_t, 256> codes = make_codes();
    for (size_t byte = 0; byte < 256; ++byte) append_character(made[byte], codes[byte]);
    return made;
  }();
  return characters;
}

std::optional<std::string> bytes_of_token(std::string_view token) {
  static const std::unordered_map<char32_t, char> bytes = [] {
    std::unordered_map<char32_t, char> made;
    const std::array<char32_t, 256> codes = make_codes();
    for (size_t byte = 0; byte < 256; ++byte) made[codes[byte]] = static_cast<char>(byte);
    return made;
  }();
  std::string out;
  for (size_t at = 0; at < token.size();) {
    const Character c = character_at(token, at);
    const auto found = bytes.find(c.code);
    if (found == bytes.end()) return std::nullopt;
    out.push_back(found->second);
    at += c.length;
  }
  return out;
}

std::string byte_token(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit);
  }
  return static_cast<unsigned char>(value);
}

std::unique_ptr<const PretokenizeStep> byte_level_step(const JsonPlace& place) {
  return std::make_unique<ByteLevelStep>(place);
}

}  // namespace tandem
