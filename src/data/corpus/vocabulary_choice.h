// Which tokenizer counts the texts of a corpus: one that is given, one extended or one trained from
// the texts themselves; when nothing is asked for, the one an earlier run left beside the index,
// which training will use too.
#pragma once

#include <memory>
#include <string>

#include "data/corpus/prepare.h"

namespace tandem {

class VocabularyChoice {
 public:
  // Loads a file that is given, so that a wrong one is known before the scan. `made` is where a
  // trained or extended vocabulary is written. Throws Error(usage) for choices that contradict each
  // other, and what `load_tokenizer` throws.
  VocabularyChoice(const PrepareOptions& options, std::string made);
  TokenizerMaker maker();  // empty: none was asked for
  const std::string& file() const { return file_; }

 private:
  std::shared_ptr<const Tokenizer> make(const std::vector<std::string>& texts);
  int train_, extend_;
  bool at_most_;
  std::string given_, made_, file_;
  std::shared_ptr<const Tokenizer> loaded_;
};

}  // namespace tandem
