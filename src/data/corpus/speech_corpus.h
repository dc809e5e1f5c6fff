// A corpus opened for training: its index and the vocabulary its texts are read with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/corpus/clip_index.h"
#include "data/order/buckets.h"
#include "text/tokenizer.h"

namespace tandem {

struct CorpusOptions {
  std::string vocabulary;  // empty: `vocab.json` beside the index where there is one, else none
  std::string language;    // of clips whose language the index does not know
  int workers = 1;
};

class SpeechCorpus {
 public:
  // `path` is an index, or whatever `tandem prepare` takes: then its index is opened, and made
  // first where it is missing or no longer good.
  static SpeechCorpus open(const std::string& path, const CorpusOptions& options);
  SpeechCorpus(ClipIndex index, std::shared_ptr<const Tokenizer> tokenizer,
               const CorpusOptions& options);

  const ClipIndex& index() const { return index_; }
  const std::string& path() const { return path_; }  // of the index; empty: it is in memory only
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // nullptr: code points
  // By row: seconds, and how many ids the text has.
  const std::vector<ClipLength>& lengths() const { return lengths_; }
  std::vector<int32_t> ids(int64_t row) const;

 private:
  void count_ids(int workers);
  ClipIndex index_;
  std::string path_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string language_;
  std::vector<ClipLength> lengths_;
};

}  // namespace tandem
