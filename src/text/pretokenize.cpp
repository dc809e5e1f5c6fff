#include "text/pretokenize.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem {
namespace {

constexpr int deepest_sequence = 16;

void add_part(const Words::Range& of, size_t begin, size_t end, Words& out) {
  if (begin == end) return;
  const size_t skipped = begin - of.begin;
  out.ranges.push_back({begin, end, of.origin - std::min(of.origin, skipped)});
}

class WhitespaceStep : public PretokenizeStep {
 public:
  void apply(const Words& in, Words& out) const override {
    out.text = in.text;
    for (const Words::Range& range : in.ranges) {
      for_each_word(in.word(range), [&](size_t begin, size_t end) {
        add_part(range, range.begin + begin, range.begin + end, out);
      });
    }
  }
};

class WhitespaceSplitStep : public PretokenizeStep {
 public:
  void apply(const Words& in, Words& out) const override {
    out.text = in.text;
    for (const Words::Range& range : in.ranges) {
      size_t begin = range.begin;
      for (size_t at = range.begin; at < range.end;) {
        const Character c = character_at({in.text.data(), range.end}, at);
        if (is_space(c.code)) {
          add_part(range, begin, at, out);
          begin = at + c.length;
        }
        at += c.length;
      }
      add_part(range, begin, range.end, out);
    }
  }
};

// Every space as a mark, perhaps one more before the first, and a cut before each.
class MetaspaceStep : public PretokenizeStep {
 public:
  explicit MetaspaceStep(const JsonPlace& place) : split_(place.truth_of("split", true)) {
    append_character(mark_, place.member("replacement").character());
    const auto scheme = place.find("prepend_scheme");
    scheme_ = scheme ? scheme->text() : "always";
    if (scheme_ != "always" && scheme_ != "first" && scheme_ != "never") {
      scheme->expected("`always`, `first` or `never`");
    }
    if (!place.truth_of("add_prefix_space", true) && scheme_ != "never") {
      place.expected("`prepend_scheme` that is `never`, as `add_prefix_space` is false,");
    }
  }

  void apply(const Words& in, Words& out) const override {
    for (const Words::Range& range : in.ranges) {
      const std::string_view word = in.word(range);
      Words::Range made{out.text.size(), 0, range.origin};
      const bool marked = word.starts_with(mark_) || word.starts_with(' ');
      const bool wanted = scheme_ == "always" || (scheme_ == "first" && range.origin > 0);
      if (wanted && !marked) {
        out.text += mark_;
        if (made.origin > 0) made.origin += mark_.size();
      }
      for (size_t i = 0; i < word.size(); ++i) {
        if (word[i] == ' ') {
          out.text += mark_;
          if (i < range.origin) made.origin += mark_.size() - 1;
        } else {
          out.text += word[i];
        }
      }
      made.end = out.text.size();
      cut(made, out);
    }
  }

 private:
  void cut(const Words::Range& whole, Words& out) const {
    size_t begin = whole.begin;
    while (split_) {
      const size_t mark = out.text.find(mark_, begin + 1);
      if (mark == std::string::npos || mark >= whole.end) break;
      add_part(whole, begin, mark, out);
      begin = mark;
    }
    add_part(whole, begin, whole.end, out);
  }

  std::string mark_, scheme_;
  bool split_;
};

}  // namespace

Pretokenizer::Pretokenizer(const JsonPlace& place) : file_(place.file()) { read(place, 0); }

void Pretokenizer::read(const JsonPlace& place, int depth) {
  const std::string& kind = place.member("type").text();
  if (kind == "Sequence") {
    if (depth == deepest_sequence) place.unsupported("too many sequences inside sequences");
    const JsonPlace list = place.member("pretokenizers");
    for (size_t i = 0; i < list.array_size(); ++i) read(list.element(i), depth + 1);
  } else if (kind == "Whitespace") {
    steps_.push_back(std::make_unique<WhitespaceStep>());
  } else if (kind == "WhitespaceSplit") {
    steps_.push_back(std::make_unique<WhitespaceSplitStep>());
  } else if (kind == "Metaspace") {
    steps_.push_back(std::make_unique<MetaspaceStep>(place));
  } else if (kind == "ByteLevel") {
    steps_.push_back(byte_level_step(place));
  } else {
    place.unsupported(fmt::format("a pre-tokeniser of kind `{}` is not known", kind));
  }
}

void Pretokenizer::apply(Words& words, Words& scratch) const {
  // A byte becomes two at most, a word gets one mark; more is a file made to fill memory.
  const size_t most = 1'000'000 + 8 * words.text.size();
  for (const auto& step : steps_) {
    scratch.text.clear();
    scratch.ranges.clear();
    step->apply(words, scratch);
    std::swap(words, scratch);
    if (words.text.size() > most) {
      throw Error(ErrorKind::data,
                  fmt::format("the pre-tokeniser of `{}` makes more than {} bytes of one text",
                              file_, most));
    }
  }
}

}  // namespace tandem
