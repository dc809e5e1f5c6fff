// The normaliser of a tokenizer file: steps that rewrite a text before it is cut into words.
// Immutable; any number of threads may use one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer_json.h"

namespace tandem {

// A stretch of the input on its way through the steps.
struct Stretch {
  std::string text;
  // How many of its first bytes come from the very first character of the input: what Metaspace's
  // `first` asks for. 0 when it starts further on.
  size_t origin = 0;
};

class NormalizeStep {
 public:
  virtual ~NormalizeStep() = default;
  virtual void apply(Stretch& stretch, std::string& scratch) const = 0;
};

class TokenNormalizer {
 public:
  TokenNormalizer() = default;
  // The value of `normalizer`. Error(data) names a kind that is not known here.
  explicit TokenNormalizer(const JsonPlace& place);

  bool empty() const { return steps_.empty(); }
  // Error(data) when the steps blow the text up without measure.
  void apply(Stretch& stretch) const;

 private:
  void read(const JsonPlace& place, int depth);

  std::string file_;
  std::vector<std::unique_ptr<const NormalizeStep>> steps_;
};

// Where a `pattern` of a tokenizer file occurs: {"String": …}, or {"Regex": …} of one repeated
// character (` {2,}`, `\s+`). Others are refused: two regular expression engines that agree on
// every pattern are not to be had.
class TokenPattern {
 public:
  explicit TokenPattern(const JsonPlace& place);
  // The first occurrence at or after `at` as [begin, end); begin == npos: none.
  std::pair<size_t, size_t> find(std::string_view text, size_t at) const;
  std::string replace(std::string_view text, std::string_view content) const;

 private:
  void read_regex(const JsonPlace& place);
  bool matches(char32_t code) const;

  std::string literal_;  // when not empty, the rest is not used
  char32_t code_ = 0;
  bool space_ = false;  // `\s` instead of code_
  size_t least_ = 1, most_ = 1;
};

}  // namespace tandem
