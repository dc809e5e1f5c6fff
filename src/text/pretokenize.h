// The pre-tokeniser of a tokenizer file: steps that cut a text into words for the model, and may
// rewrite them (spaces as `▁`). Immutable; any number of threads may use one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_unicode.h"
#include "text/tokenizer_json.h"

namespace tandem {

// Words as ranges of one text.
struct Words {
  struct Range {
    size_t begin = 0, end = 0;
    size_t origin = 0;  // as in Stretch (tokenizer_normalize.h)
  };
  std::string text;
  std::vector<Range> ranges;

  std::string_view word(const Range& range) const {
    return std::string_view(text).substr(range.begin, range.end - range.begin);
  }
};

class PretokenizeStep {
 public:
  virtual ~PretokenizeStep() = default;
  // Makes `out` of `in`; `out` is empty before. No word of `out` may be empty.
  virtual void apply(const Words& in, Words& out) const = 0;
};

class Pretokenizer {
 public:
  Pretokenizer() = default;
  // The value of `pre_tokenizer`. Error(data) names a kind that is not known here.
  explicit Pretokenizer(const JsonPlace& place);

  // Cuts the ranges of `words` by all steps. `scratch` saves allocations between calls. Error(data)
  // when the steps blow the text up without measure.
  void apply(Words& words, Words& scratch) const;

 private:
  void read(const JsonPlace& place, int depth);

  std::string file_;
  std::vector<std::unique_ptr<const PretokenizeStep>> steps_;
};

std::unique_ptr<const PretokenizeStep> byte_level_step(const JsonPlace& place);

// `\w+|[^\w\s]+`: calls `found(begin, end)` for every match, in order.
template <typename Found>
void for_each_word(std::string_view text, Found&& found) {
  enum class Kind { space, word, other };
  Kind running = Kind::space;
  size_t begin = 0, at = 0;
  while (at < text.size()) {
    const Character c = character_at(text, at);
    const Kind kind = is_word(c.code) ? Kind::word : is_space(c.code) ? Kind::space : Kind::other;
    if (kind != running) {
      if (running != Kind::space) found(begin, at);
      running = kind;
      begin = at;
    }
    at += c.length;
  }
  if (running != Kind::space) found(begin, at);
}

}  // namespace tandem
