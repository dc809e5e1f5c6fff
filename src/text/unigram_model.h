// Unigram: of all ways to write a word as pieces, the one with the highest sum of scores.
#pragma once

#include <string>
#include <vector>

#include "text/token_model.h"
#include "text/token_trie.h"

namespace tandem {

class UnigramModel : public TokenModel {
 public:
  explicit UnigramModel(const JsonPlace& place);
  // Error(data) when a character is in no piece and the file names no unknown token.
  void tokenize(std::string_view word, std::vector<int32_t>& ids) const override;
  int32_t unknown_id() const override { return unknown_; }

 private:
  struct Pieces {
    std::vector<std::string> tokens;
    std::vector<double> scores;
  };
  static Pieces read_pieces(const JsonPlace& place);
  UnigramModel(const JsonPlace& place, Pieces pieces);
  void add_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  std::string file_;
  TokenTrie pieces_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  int32_t unknown_ = Vocabulary::none;
  bool byte_fallback_ = false;
};

}  // namespace tandem
