#include "text/token_decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/token_bytes.h"
#include "text/token_unicode.h"
#include "text/tokenizer_normalize.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr int deepest_sequence = 16;

void replace_all(std::string& text, std::string_view old_part, std::string_view new_part) {
  if (old_part.empty()) return;
  size_t at = 0;
  while ((at = text.find(old_part, at)) != std::string::npos) {
    text.replace(at, old_part.size(), new_part);
    at += new_part.size();
  }
}

bool is_utf8(const std::string& text) {
  std::string storage;
  return valid_utf8(text, storage).data() == text.data();
}

// `</w>` at the end of a token is the space after a word.
class BpeDecodeStep : public DecodeStep {
 public:
  explicit BpeDecodeStep(const JsonPlace& place) : suffix_(place.member("suffix").text()) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

// `<0xE2>`, `<0x82>`, `<0xAC>` are the bytes of one character.
class ByteFallbackStep : public DecodeStep {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (is_utf8(bytes)) {
        if (!bytes.empty()) out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), "\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of_token(token)) {
        bytes.push_back(static_cast<char>(*byte));
      } else {
        flush();
        out.push_back(std::move(token));
      }
    }
    flush();
    tokens.swap(out);
  }
};

class ByteLevelDecodeStep : public DecodeStep {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes, storage;
    for (const std::string& token : tokens) bytes += bytes_of_token(token).value_or(token);
    tokens.assign(1, std::string(valid_utf8(bytes, storage)));
  }
};

class FuseStep : public DecodeStep {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    tokens.assign(1, join(tokens, ""));
  }
};

class MetaspaceDecodeStep : public DecodeStep {
 public:
  explicit MetaspaceDecodeStep(const JsonPlace& place)
      : never_(place.text_of("prepend_scheme", "always") == "never") {
    append_character(mark_, place.member("replacement").character());
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], mark_, i == 0 && !never_ ? "" : " ");
    }
  }

 private:
  std::string mark_;
  bool never_;
};

class ReplaceDecodeStep : public DecodeStep {
 public:
  explicit ReplaceDecodeStep(const JsonPlace& place)
      : pattern_(place.member("pattern")), content_(place.member("content").text()) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) token = pattern_.replace(token, content_);
  }

 private:
  TokenPattern pattern_;
  std::string content_;
};

class StripDecodeStep : public DecodeStep {
 public:
  explicit StripDecodeStep(const JsonPlace& place)
      : start_(place.member("start").whole(0, 1'000'000)),
        stop_(place.member("stop").whole(0, 1'000'000)) {
    append_character(content_, place.member("content").character());
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      size_t begin = 0, end = token.size();
      for (int64_t i = 0; i < start_ && token.compare(begin, content_.size(), content_) == 0; ++i) {
        begin += content_.size();
      }
      for (int64_t i = 0; i < stop_ && end >= begin + content_.size() &&
                          token.compare(end - content_.size(), content_.size(), content_) == 0;
           ++i) {
        end -= content_.size();
      }
      token = token.substr(begin, end - begin);
    }
  }

 private:
  std::string content_;
  int64_t start_, stop_;
};

class WordPieceStep : public DecodeStep {
 public:
  explicit WordPieceStep(const JsonPlace& place)
      : prefix_(place.member("prefix").text()), tidy_(place.member("cleanup").truth()) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) {
        token = token.starts_with(prefix_) ? token.substr(prefix_.size()) : " " + token;
      }
      if (tidy_) tidy(token);
    }
  }

 private:
  static void tidy(std::string& token) {
    static constexpr std::pair<std::string_view, std::string_view> table[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [old_part, new_part] : table) replace_all(token, old_part, new_part);
  }
  std::string prefix_;
  bool tidy_;
};

}  // namespace

TokenDecoder::TokenDecoder(const JsonPlace& place) : given_(true) { read(place, 0); }

void TokenDecoder::read(const JsonPlace& place, int depth) {
  const std::string& kind = place.member("type").text();
  const auto add = [this](auto step) { steps_.push_back(std::move(step)); };
  if (kind == "Sequence") {
    if (depth == deepest_sequence) place.unsupported("too many sequences inside sequences");
    const JsonPlace list = place.member("decoders");
    for (size_t i = 0; i < list.array_size(); ++i) read(list.element(i), depth + 1);
  } else if (kind == "BPEDecoder") {
    add(std::make_unique<BpeDecodeStep>(place));
  } else if (kind == "ByteFallback") {
    add(std::make_unique<ByteFallbackStep>());
  } else if (kind == "ByteLevel") {
    add(std::make_unique<ByteLevelDecodeStep>());
  } else if (kind == "Fuse") {
    add(std::make_unique<FuseStep>());
  } else if (kind == "Metaspace") {
    add(std::make_unique<MetaspaceDecodeStep>(place));
  } else if (kind == "Replace") {
    add(std::make_unique<ReplaceDecodeStep>(place));
  } else if (kind == "Strip") {
    add(std::make_unique<StripDecodeStep>(place));
  } else if (kind == "WordPiece") {
    add(std::make_unique<WordPieceStep>(place));
  } else {
    place.unsupported(fmt::format("a decoder of kind `{}` is not known", kind));
  }
}

std::string TokenDecoder::decode(std::vector<std::string> tokens) const {
  if (!given_) return join(tokens, " ");
  for (const auto& step : steps_) step->apply(tokens);
  return join(tokens, "");
}

}  // namespace tandem
