// The order in which `tandem tune` tries things: the guess, precision, batch, recompute, workers,
// buffer, buckets, and in the end everything found together. What the user set stays as it is.
// Without devices and processes: `measure` knows how a set of values is tried.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "observe/tune_search.h"

namespace tandem {

using TuneSettings = std::map<std::string, std::string>;  // "data.batch_size" -> "16"

struct TuneTask {
  bool generate = false;                // else train
  TuneSettings guess;                   // values of all keys that may change
  std::set<std::string> held;           // keys the user set
  std::vector<std::string> precisions;  // to try beside the guess's
  bool buckets = true;                  // the stage's batches have buckets
  bool recompute = true;                // the stage can compute activations again
  bool speed_counts = true;             // false on simulated devices, whose speed is the CPU's
  int64_t clips_a_step = 0;             // batch times accumulation to keep; 0: at least the guess's
  int64_t most_batch = 4096, most_workers = 64;
  double fixed_bytes = 0, bytes_a_clip = 0;  // the byte model; 0: not known
  int64_t first_batch = 0;                   // to begin the search with; 0: the guess's
  double tolerance = 0.05;
  const char* batch_key() const { return generate ? "generation.batch_size" : "data.batch_size"; }
};

struct TuneTrial {
  std::string what;  // "guess", "batch", "workers", …
  TuneSettings settings;
  TuneReading reading;
};

struct TuneResult {
  TuneSettings found;
  TuneReading guess_reading, found_reading;
  int64_t largest_batch = 0;
  std::vector<TuneTrial> trials;
  std::vector<std::string> notes;  // sentences for the user
};

using MeasureSettings =
    std::function<TuneReading(const std::string& what, const TuneSettings& settings)>;

// About how many measurements it will take.
int expected_trials(const TuneTask& task);

// Throws Error(memory) when nothing fits, and what `measure` throws.
TuneResult walk_settings(const TuneTask& task, const MeasureSettings& measure,
                         const Enough& enough);

}  // namespace tandem
