// From a folder of speech to an index: detects, reads, scans, writes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/corpus/corpus_report.h"

namespace tandem {

struct PrepareOptions {
  std::string input = {};  // a folder, a table, a manifest, a tar, an index
  std::string out = {};    // the index; empty: `default_index(input)`
  DatasetOptions dataset = {};
  ClipLimits limits = {};
  bool quick = false;
  int workers = 0;
  double max_bad_share = 0.2;  // of broken clips and rows
  std::string tokenizer_file = {};
  int train_tokenizer = 0;    // size of a vocabulary to train from the texts
  bool fewer_tokens = false;  // are no error, where the texts give no more
  int extend_tokenizer = 0;   // how many tokens are added to `tokenizer_file`
  std::function<void(const std::string&)> on_notice = {};  // sentences for the user, as they come
  std::function<void(const ScanProgress&)> on_progress = {};
};

struct PreparedCorpus {
  std::string index, dropped_list, page;  // files written
  std::string vocabulary;                 // the tokenizer's file; empty: none
  CorpusSummary summary;
  int64_t reused = 0;  // sounds that were known from an earlier run
  double seconds = 0;
};

// `DIR/tandem.index`, or `name.index` beside the table `name.csv`.
std::string default_index(const std::string& input);

// Throws Error(io) before anything is scanned when the place of the index cannot be written to, and
// Error(data) that names the list of dropped clips when more than `max_bad_share` are broken or
// none is left.
PreparedCorpus prepare_corpus(const PrepareOptions& options);

}  // namespace tandem
