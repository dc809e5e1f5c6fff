// All that feeds speech to a model, opened from the settings: corpus, order, bad files, batches.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/corpus/corpus_split.h"
#include "data/feed/speech_batches.h"

namespace tandem {

struct DataConfig;

// What a model can take of a clip; 0: anything. Longer clips are left out, and listed among the bad
// files with a sentence.
struct ClipBounds {
  int64_t most_samples = 0;  // at the feed's rate, before silence is trimmed
  int64_t most_tokens = 0;
};

struct SpeechFeedOptions {
  uint64_t seed = 0;
  std::string bad_list = {};  // where clips that cannot be used are listed; empty: nowhere
  bool list_waits = false;    // until `bad.begin()`
  bool on_host = false;       // the CPU prepares
  bool shuffle = true;
  int64_t replicas = 1;                     // that share a batch
  std::optional<SpeechOptions> sound = {};  // none: what the settings of `data` say
  ClipBounds bounds = {};
  // A part of the corpus: see rows_of_side. Clips out of bounds are listed once: the side that
  // validates lists none.
  Side side = Side::all;
  double validation_share = 0;
};

struct SpeechFeed {
  // `path` is an index or a dataset. Throws Error(data) where no clip is left.
  SpeechFeed(const std::string& path, const DataConfig& config, const SpeechFeedOptions& options);
  SpeechFeed(SpeechCorpus opened, const DataConfig& config, const SpeechFeedOptions& options);
  SpeechFeed(const std::string& path, const DataConfig& config, uint64_t seed,
             const std::string& bad_list, bool on_host = false, bool shuffle = true);
  SpeechFeed(const SpeechFeed&) = delete;
  SpeechFeed& operator=(const SpeechFeed&) = delete;

  // What must be the same for the order of batches to be.
  std::string words() const;
  // How many clips the general decoder read; empty where it read none, or all by wish.
  std::string reading_words() const;
  // Files of a batch, in the order of its rows.
  std::vector<std::string> clips_of(int64_t batch) const;

  SpeechCorpus corpus;
  BadFiles bad;
  BatchOrder order;                // of the clips that are within bounds and on this side
  std::optional<ClipCache> cache;  // INDEX.mels, where there is one
  KeptSounds kept;
  SpeechBatches batches;
};

// The two sides of a run's data: `data.val_data` is validated on where it is given, else
// `data.validation_share` of `data.train_data`. They set side, share and, of the second, that
// nothing is shuffled; the rest is the caller's. open_validation gives nullptr where there is
// nothing to validate on: a share of 0, or a corpus of one clip. Throws Error(config) without
// train_data.
std::unique_ptr<SpeechFeed> open_training(const DataConfig& config, SpeechFeedOptions options);
std::unique_ptr<SpeechFeed> open_validation(const DataConfig& config, SpeechFeedOptions options);

// Says which reader is used (contract 003-2).
void announce_loading(const DataConfig& config);

SpeechOptions speech_options(const DataConfig& config, uint64_t seed);

}  // namespace tandem
