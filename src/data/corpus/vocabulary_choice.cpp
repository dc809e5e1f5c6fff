#include "data/corpus/vocabulary_choice.h"

#include <fmt/format.h>

#include <filesystem>

#include "tandem/error.h"
#include "text/bpe_train.h"
#include "util/atomic_file.h"

namespace tandem {

VocabularyChoice::VocabularyChoice(const PrepareOptions& options, std::string made)
    : train_(options.train_tokenizer),
      extend_(options.extend_tokenizer),
      at_most_(options.fewer_tokens),
      given_(options.tokenizer_file),
      made_(std::move(made)) {
  if (train_ > 0 && (extend_ > 0 || !given_.empty())) {
    throw Error(ErrorKind::usage,
                "--train-tokenizer makes a new vocabulary; it goes with neither "
                "--tokenizer nor --extend-tokenizer");
  }
  if (extend_ > 0 && given_.empty()) {
    throw Error(ErrorKind::usage,
                "--extend-tokenizer needs the vocabulary it adds to; expected --tokenizer FILE");
  }
  std::error_code ignored;
  if (given_.empty() && train_ <= 0 && std::filesystem::exists(made_, ignored)) given_ = made_;
  if (given_.empty()) return;
  loaded_ = load_tokenizer(given_);
  file_ = given_;
  if (extend_ > 0 && std::filesystem::equivalent(given_, made_, ignored)) {
    throw Error(ErrorKind::usage,
                fmt::format("the extended vocabulary would replace `{}`, which it extends", given_))
        .hint("keep the original under another name, or give another --out");
  }
}

TokenizerMaker VocabularyChoice::maker() {
  if (train_ <= 0 && !loaded_) return nullptr;
  return [this](const std::vector<std::string>& texts) { return make(texts); };
}

std::shared_ptr<const Tokenizer> VocabularyChoice::make(const std::vector<std::string>& texts) {
  // Without texts nothing can be learned, and the scan ends with a sentence about that anyway.
  if ((train_ <= 0 && extend_ <= 0) || texts.empty()) return loaded_;
  const std::string json = extend_ > 0
                               ? extend_vocabulary(read_file(given_), texts, extend_)
                               : train_bpe(texts, {.vocabulary_size = train_, .at_most = at_most_});
  write_file_atomically(made_, json);
  file_ = made_;
  return parse_tokenizer(json, made_);
}

}  // namespace tandem
