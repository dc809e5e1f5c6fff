#include "text/tokenizer.h"

namespace tandem {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids(text.size());
    for (size_t i = 0; i < text.size(); ++i) ids[i] = static_cast<unsigned char>(text[i]);
    return ids;
  }
  std::string decode(const std::vector<int32_t>& ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const int32_t id : ids) {
      if (id >= 0 && id < 256) text.push_back(static_cast<char>(id));
    }
    return text;
  }
  int64_t vocabulary_size() const override { return 256; }
  int32_t unknown_id() const override { return -1; }
  int32_t id_of(std::string_view token) const override {
    return token.size() == 1 ? static_cast<unsigned char>(token[0]) : -1;
  }
};

}  // namespace

std::unique_ptr<const Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::string xtts_input(std::string_view cleaned_text, std::string_view language) {
  // The region of a language has no token of its own; Chinese is only there with one.
  const std::string_view base = language.substr(0, language.find('-'));
  std::string out = "[";
  out.append(base == "zh" ? "zh-cn" : base).append("]");
  for (const char c : cleaned_text) {
    if (c == ' ') {
      out += "[SPACE]";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace tandem
