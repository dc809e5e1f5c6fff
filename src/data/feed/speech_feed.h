// All that feeds speech to a model, opened from the settings: corpus, order, bad files, batches.
#pragma once

#include <memory>
#include <string>

#include "data/feed/speech_batches.h"

namespace tandem {

struct DataConfig;

struct SpeechFeed {
  // `path` is an index or a dataset; `bad_list` where clips that cannot be used are listed;
  // `on_host`: the CPU prepares.
  SpeechFeed(const std::string& path, const DataConfig& config, uint64_t seed,
             const std::string& bad_list, bool on_host = false, bool shuffle = true);
  SpeechFeed(const SpeechFeed&) = delete;
  SpeechFeed& operator=(const SpeechFeed&) = delete;

  SpeechCorpus corpus;
  BatchOrder order;
  BadFiles bad;
  SpeechBatches batches;
};

// Says which reader is used (contract 003-2).
void announce_loading(const DataConfig& config);

SpeechOptions speech_options(const DataConfig& config, uint64_t seed);

}  // namespace tandem
