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

// The feed beside a stand-in for training that keeps the model device busy for a given time a step.
struct StepBench {
  double replay_step = 0;  // seconds, with one batch again and again: nothing to wait for
  double fed_step = 0;     // seconds, with the feed at work
  double wait_share = 0;   // of the fed steps, the trainer's thread waiting for a batch
  uint64_t late = 0;       // batches that were not ready on the device when they were asked for
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
  std::optional<StepBench> steps;
};

struct DataBenchOptions {
  std::string data;
  DataConfig settings;
  uint64_t seed = 0;
  double seconds = 10;
  std::string data_device, model_device;  // "/GPU:0"
  double step_seconds = 0;                // above 0: also measure beside steps of this length
};

DataBench bench_data(const DataBenchOptions& options);

class LogicalDevice;
struct SpeechFeed;
StepBench bench_steps(SpeechFeed& speech, const FeedOptions& feeding, LogicalDevice& data,
                      LogicalDevice& model, double step_seconds, double seconds);

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
