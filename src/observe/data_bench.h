// How fast clips become batches: each stage alone on one thread, and the whole feed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/feed/feed.h"
#include "tandem/config.h"

namespace tandem {

struct StageRate {
  std::string name;             // decode, tokenize, resample, mel
  double clips_per_second = 0;  // on one thread
};

struct DataBench {
  double clips_per_second = 0;  // of the whole feed, once warm
  int64_t clips = 0;
  double seconds = 0;
  double times_real_time = 0;
  double first_batch_seconds = 0;  // from opening the index to the first batch
  std::vector<StageRate> stages;
  FeedCounters queues;
  double padding = 0;  // share of the batches' time
  int64_t bad_clips = 0;
  std::string device;  // that prepared
};

struct DataBenchOptions {
  std::string data;
  DataConfig settings;
  uint64_t seed = 0;
  double seconds = 10;
  std::string data_device, model_device;  // "/GPU:0"
};

DataBench bench_data(const DataBenchOptions& options);

// The same by the loader everybody uses, run as a program. `python` has its libraries.
struct PeerOptions {
  std::string python, script, data, tokenizer, mel;
  int64_t workers = 1, batch_size = 16, sample_rate = 22050;
  double seconds = 10;
};
struct PeerBench {
  double clips_per_second = 0;
  std::vector<StageRate> stages;
  std::string name;
};
// Throws Error(io) with the program's last words when it fails.
PeerBench bench_peer(const PeerOptions& options);
PeerBench parse_peer(const std::string& json);

}  // namespace tandem
