// The order in which `tandem tune` tries things: the guess, precision, batch, recompute, workers,
// buffer, buckets, and in the end everything found together; for generating, batches from a
// moderate one up, and the guess where the time is left. What the user set stays as it is. The best
// that was measured is what is found.
// Without devices and processes: `measure` knows how a set of values is tried.
//
// Accumulation is not searched. More clips an optimizer step make the optimizer's part of a clip
// smaller, which looks like speed, but it is another training: other gradients, fewer updates. It
// stays as guessed unless a step of as many clips was asked for, or memory holds fewer at once than
// the guess has in a step.
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
  int64_t first_batch = 0;                   // the largest by the byte model; 0: not known
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
  int64_t largest_batch = 0;          // that was tried and fits; 0: none was looked for
  bool largest_is_the_limit = false;  // more does not fit
  std::vector<TuneTrial> trials;
  std::vector<std::string> notes;  // sentences for the user
};

using MeasureSettings =
    std::function<TuneReading(const std::string& what, const TuneSettings& settings)>;

// About how many measurements it will take.
int expected_trials(const TuneTask& task);

// Throws Error(memory) when nothing fits, and what `measure` throws.
// `left`: nothing is begun that would take longer, by what the last measurements took.
TuneResult walk_settings(const TuneTask& task, const MeasureSettings& measure, const Enough& enough,
                         const SecondsLeft& left = {});

}  // namespace tandem
