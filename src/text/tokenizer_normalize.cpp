#include "text/tokenizer_normalize.h"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>

#include <algorithm>

#include "tandem/error.h"
#include "text/charsmap.h"
#include "text/token_unicode.h"

namespace tandem {
namespace {

constexpr int deepest_sequence = 16;

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
}

class CharsmapStep : public NormalizeStep {
 public:
  explicit CharsmapStep(const JsonPlace& place) : map_(place.member("precompiled_charsmap")) {}
  void apply(Stretch& stretch, std::string& scratch) const override {
    map_.apply(stretch.text, scratch, stretch.origin);
    stretch.text.swap(scratch);
  }

 private:
  Charsmap map_;
};

class ReplaceStep : public NormalizeStep {
 public:
  explicit ReplaceStep(const JsonPlace& place)
      : pattern_(place.member("pattern")), content_(place.member("content").text()) {}
  void apply(Stretch& stretch, std::string&) const override {
    const auto [begin, end] = pattern_.find(stretch.text, 0);
    if (begin == std::string::npos) return;
    // New characters count as coming from the last one they replace.
    if (begin < stretch.origin) {
      const bool of_first = begin > 0 || count_characters({stretch.text.data(), end}) == 1;
      stretch.origin = !of_first ? 0 : begin + content_.size();
    }
    stretch.text = pattern_.replace(stretch.text, content_);
    stretch.origin = std::min(stretch.origin, stretch.text.size());
  }

 private:
  TokenPattern pattern_;
  std::string content_;
};

// The characters of Unicode 9, which is what the reference's normal forms know; later ones stay as
// they are and part what stands on both sides.
const icu::UnicodeSet& normalized_characters() {
  static const icu::UnicodeSet set = [] {
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeSet made(u"[:age=9.0:]", status);
    if (U_FAILURE(status)) throw Error(ErrorKind::internal, "ICU has no ages of characters");
    made.freeze();
    return made;
  }();
  return set;
}

class UnicodeStep : public NormalizeStep {
 public:
  using Instance = const icu::Normalizer2* (*)(UErrorCode&);
  explicit UnicodeStep(Instance instance) : form_(ready(instance), normalized_characters()) {}

  void apply(Stretch& stretch, std::string& scratch) const override {
    if (is_ascii(stretch.text)) return;
    if (stretch.origin > 0) {
      std::string first;
      normalize({stretch.text.data(), character_at(stretch.text, 0).length}, first);
      normalize(stretch.text, scratch);
      stretch.origin = scratch.starts_with(first) ? first.size() : character_at(scratch, 0).length;
    } else {
      normalize(stretch.text, scratch);
    }
    stretch.text.swap(scratch);
  }

 private:
  static const icu::Normalizer2& ready(Instance instance) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* form = instance(status);
    if (U_FAILURE(status)) {
      throw Error(ErrorKind::internal,
                  fmt::format("ICU has no normaliser: {}", u_errorName(status)));
    }
    return *form;
  }
  void normalize(std::string_view text, std::string& out) const {
    out.clear();
    icu::StringByteSink<std::string> sink(&out);
    UErrorCode status = U_ZERO_ERROR;
    form_.normalizeUTF8(0, {text.data(), static_cast<int32_t>(text.size())}, sink, nullptr, status);
    if (U_FAILURE(status)) {
      throw Error(ErrorKind::data, fmt::format("a text of {} bytes cannot be normalised: {}",
                                               text.size(), u_errorName(status)));
    }
  }
  icu::FilteredNormalizer2 form_;
};

// Capital letters of Unicode 16 and 17, from UnicodeData.txt, for an ICU that is older.
char32_t newer_lower(char32_t code) {
  struct Capitals {
    char32_t first, last, lower;
  };
  static constexpr Capitals table[] = {{0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x264},
                                       {0xA7CC, 0xA7CC, 0xA7CD},    {0xA7CE, 0xA7CE, 0xA7CF},
                                       {0xA7D2, 0xA7D2, 0xA7D3},    {0xA7D4, 0xA7D4, 0xA7D5},
                                       {0xA7DA, 0xA7DA, 0xA7DB},    {0xA7DC, 0xA7DC, 0x19B},
                                       {0x10D50, 0x10D65, 0x10D70}, {0x16EA0, 0x16EB8, 0x16EBB}};
  for (const Capitals& row : table) {
    if (code >= row.first && code <= row.last) return row.lower + (code - row.first);
  }
  return code;
}

char32_t lower_of(char32_t code) {
  const auto lower = static_cast<char32_t>(u_tolower(static_cast<UChar32>(code)));
  return lower == code && code >= 0x1C89 ? newer_lower(code) : lower;
}

class LowercaseStep : public NormalizeStep {
 public:
  void apply(Stretch& stretch, std::string& scratch) const override {
    scratch.clear();
    for (size_t at = 0; at < stretch.text.size();) {
      const Character c = character_at(stretch.text, at);
      if (c.code == 0x130) {  // the one character whose lower case is two
        scratch += "i\u0307";
      } else {
        append_character(scratch, lower_of(c.code));
      }
      if (at == 0 && stretch.origin > 0) stretch.origin = scratch.size();
      at += c.length;
    }
    stretch.text.swap(scratch);
  }
};

class StripStep : public NormalizeStep {
 public:
  explicit StripStep(const JsonPlace& place)
      : left_(place.member("strip_left").truth()), right_(place.member("strip_right").truth()) {}
  void apply(Stretch& stretch, std::string&) const override {
    std::string& text = stretch.text;
    while (right_ && !text.empty()) {
      const Character c = character_before(text, text.size());
      if (!is_space(c.code)) break;
      text.resize(text.size() - c.length);
    }
    size_t begin = 0;
    while (left_ && begin < text.size()) {
      const Character c = character_at(text, begin);
      if (!is_space(c.code)) break;
      begin += c.length;
    }
    text.erase(0, begin);
    stretch.origin = std::min(stretch.origin - std::min(stretch.origin, begin), text.size());
  }

 private:
  bool left_, right_;
};

class PrependStep : public NormalizeStep {
 public:
  explicit PrependStep(const JsonPlace& place) : front_(place.member("prepend").text()) {}
  void apply(Stretch& stretch, std::string&) const override {
    if (stretch.text.empty()) return;
    stretch.text.insert(0, front_);
    if (stretch.origin > 0) stretch.origin += front_.size();
  }

 private:
  std::string front_;
};

}  // namespace

TokenNormalizer::TokenNormalizer(const JsonPlace& place) : file_(place.file()) { read(place, 0); }

void TokenNormalizer::read(const JsonPlace& place, int depth) {
  const std::string& kind = place.member("type").text();
  const auto add = [this](auto step) { steps_.push_back(std::move(step)); };
  if (kind == "Sequence") {
    if (depth == deepest_sequence) place.unsupported("too many sequences inside sequences");
    const JsonPlace list = place.member("normalizers");
    for (size_t i = 0; i < list.array_size(); ++i) read(list.element(i), depth + 1);
  } else if (kind == "Precompiled") {
    add(std::make_unique<CharsmapStep>(place));
  } else if (kind == "Replace") {
    add(std::make_unique<ReplaceStep>(place));
  } else if (kind == "NFC") {
    add(std::make_unique<UnicodeStep>(&icu::Normalizer2::getNFCInstance));
  } else if (kind == "NFD") {
    add(std::make_unique<UnicodeStep>(&icu::Normalizer2::getNFDInstance));
  } else if (kind == "NFKC") {
    add(std::make_unique<UnicodeStep>(&icu::Normalizer2::getNFKCInstance));
  } else if (kind == "NFKD") {
    add(std::make_unique<UnicodeStep>(&icu::Normalizer2::getNFKDInstance));
  } else if (kind == "Lowercase") {
    add(std::make_unique<LowercaseStep>());
  } else if (kind == "Strip") {
    add(std::make_unique<StripStep>(place));
  } else if (kind == "Prepend") {
    add(std::make_unique<PrependStep>(place));
  } else {
    place.unsupported(fmt::format("a normaliser of kind `{}` is not known", kind));
  }
}

void TokenNormalizer::apply(Stretch& stretch) const {
  // Compatibility forms make 33 bytes of 3; more than that is a file made to fill memory.
  const size_t most = 1'000'000 + 64 * stretch.text.size();
  std::string scratch;
  for (const auto& step : steps_) {
    step->apply(stretch, scratch);
    if (stretch.text.size() > most) {
      throw Error(
          ErrorKind::data,
          fmt::format("the normaliser of `{}` makes more than {} bytes of one text", file_, most));
    }
  }
}

}  // namespace tandem
