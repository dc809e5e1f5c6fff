// What turns one word into ids: BPE or Unigram. Immutable; any number of threads may use one.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer_json.h"
#include "text/vocabulary.h"

namespace tandem {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of `word`, which is not empty.
  virtual void tokenize(std::string_view word, std::vector<int32_t>& ids) const = 0;
  virtual int32_t unknown_id() const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit TokenModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Vocabulary vocabulary_;
};

// The value of `model`. Error(data) names a kind that is not known here.
std::unique_ptr<const TokenModel> read_token_model(const JsonPlace& place);

}  // namespace tandem
