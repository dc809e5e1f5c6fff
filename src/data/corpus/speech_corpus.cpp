#include "data/corpus/speech_corpus.h"

#include <algorithm>
#include <filesystem>

#include "data/corpus/clip_ids.h"
#include "data/corpus/dataset.h"
#include "data/corpus/parallel_rows.h"
#include "data/corpus/prepare.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

ClipIndex prepared_index(const std::string& path, const CorpusOptions& options,
                         std::string& index_path) {
  const bool is_index = fs::is_regular_file(path) && detect_dataset(path).kind == LayoutKind::index;
  index_path = is_index ? path : default_index(path);
  if (is_index) return ClipIndex::open(path);
  if (fs::exists(index_path)) {
    try {
      return ClipIndex::open(index_path);
    } catch (const Error& error) {
      log_warning("{}; preparing `{}` again", error.what(), path);
    }
  } else {
    log_info("`{}` has no index yet: preparing it", path);
  }
  prepare_corpus({.input = path,
                  .dataset = {.language = options.language},
                  .workers = options.workers,
                  .tokenizer_file = options.vocabulary,
                  .on_notice = [](const std::string& line) { log_info("{}", line); }});
  return ClipIndex::open(index_path);
}

std::shared_ptr<const Tokenizer> vocabulary_of(const std::string& index_path,
                                               const std::string& chosen) {
  if (!chosen.empty()) return load_tokenizer(chosen);
  const fs::path beside = fs::path(index_path).parent_path() / "vocab.json";
  if (fs::exists(beside)) return load_tokenizer(beside.string());
  log_info("no vocabulary beside `{}`: characters are read as their code points", index_path);
  return nullptr;
}

}  // namespace

SpeechCorpus SpeechCorpus::open(const std::string& path, const CorpusOptions& options) {
  std::string index_path;
  ClipIndex index = prepared_index(path, options, index_path);
  auto tokenizer = vocabulary_of(index_path, options.vocabulary);
  SpeechCorpus corpus(std::move(index), std::move(tokenizer), options);
  corpus.path_ = index_path;
  return corpus;
}

SpeechCorpus::SpeechCorpus(ClipIndex index, std::shared_ptr<const Tokenizer> tokenizer,
                           const CorpusOptions& options)
    : index_(std::move(index)), tokenizer_(std::move(tokenizer)), language_(options.language) {
  lengths_.reserve(static_cast<size_t>(index_.size()));
  for (int64_t row = 0; row < index_.size(); ++row) {
    const ClipView clip = index_[row];
    lengths_.push_back({.seconds = clip.seconds(), .tokens = clip.tokens});
  }
  // The index knows how many ids a text has in the vocabulary it was made with. A few clips tell
  // whether that is this one.
  constexpr int64_t looks = 64;
  for (int64_t i = 0; i < std::min(looks, index_.size()); ++i) {
    const int64_t row = i * index_.size() / std::min(looks, index_.size());
    if (static_cast<int32_t>(ids(row).size()) == lengths_[static_cast<size_t>(row)].tokens)
      continue;
    log_info("the index was made with another vocabulary: counting the ids of all texts again");
    count_ids(options.workers);
    return;
  }
}

std::vector<int32_t> SpeechCorpus::ids(int64_t row) const {
  const ClipView clip = index_[row];
  const std::string_view language = clip.language.empty() ? language_ : clip.language;
  return clip_ids(spoken_text(std::string(clip.text), language), language, tokenizer_.get());
}

void SpeechCorpus::count_ids(int workers) {
  for_rows(
      index_.size(), std::max(1, workers),
      [&](int64_t row) {
        lengths_[static_cast<size_t>(row)].tokens = static_cast<int32_t>(ids(row).size());
      },
      [](int64_t) {});
}

}  // namespace tandem
