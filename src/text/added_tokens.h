// The `added_tokens` of a tokenizer file: found in the text before anything else, longest first.
// Those with `normalized` false are found in the text as it came, the others after the normaliser.
// Immutable; any number of threads may use one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/token_model.h"
#include "text/token_trie.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_normalize.h"

namespace tandem {

struct AddedToken {
  std::string content;
  bool single_word = false;             // only where no word character touches it
  bool lstrip = false, rstrip = false;  // takes the spaces before or after it along
  bool normalized = false;
  bool special = false;  // left out by decode
  bool operator==(const AddedToken&) const = default;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // The ids in the file are not used: a token has the id the model gives it, else the next free
  // one counted from the number of the model's tokens. So does the reference, and the models in
  // use were trained with its ids.
  AddedTokens(const JsonPlace& place, const TokenModel& model, const TokenNormalizer& normalizer);

  // Calls `token(id)` and `gap(begin, end)` in the order of the text; gaps are not empty.
  template <typename Gap, typename Token>
  void split(std::string_view text, bool normalized, Gap&& gap, Token&& token) const;

  bool any(bool normalized) const { return !trie(normalized).empty(); }
  int32_t id_of(std::string_view content) const;
  const AddedToken* token_of(int32_t id) const;
  bool is_special(const std::string& content) const { return specials_.contains(content); }
  const auto& by_id() const { return by_id_; }
  int64_t end() const { return end_; }  // one more than the largest id

 private:
  struct Match {
    size_t begin, end;
  };
  const TokenTrie& trie(bool normalized) const { return normalized ? after_ : before_; }
  // The match with the spaces it takes along; false when it may not stand there.
  bool widen(std::string_view text, const AddedToken& token, size_t taken, Match& match) const;

  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, AddedToken> by_id_;
  std::unordered_set<std::string> specials_;
  TokenTrie before_, after_;
  int64_t end_ = 0;
};

template <typename Gap, typename Token>
void AddedTokens::split(std::string_view text, bool normalized, Gap&& gap, Token&& token) const {
  const TokenTrie& tokens = trie(normalized);
  size_t taken = 0;
  for (size_t at = 0; at < text.size() && !tokens.empty();) {
    if (!tokens.starts(static_cast<unsigned char>(text[at]))) {
      ++at;
      continue;
    }
    const auto [end, id] = tokens.longest(text, at);
    if (id == TokenTrie::none) {
      ++at;
      continue;
    }
    Match match{at, end};
    at = end;
    if (!widen(text, by_id_.at(id), taken, match)) continue;
    if (taken < match.begin) gap(taken, match.begin);
    token(id);
    taken = match.end;
  }
  if (taken < text.size()) gap(taken, text.size());
}

}  // namespace tandem
