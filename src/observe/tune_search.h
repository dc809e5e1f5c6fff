// The search behind `tandem tune`, without devices and without processes: whoever calls it says how
// a set of values is measured. Memory is taken to grow with the batch, along a line; speed is taken
// to be noisy: what is within the measured spread of something else is not faster (`in_doubt`), and
// of two that are as fast the one with less memory is better.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

enum class ProbeOutcome { fits, out_of_memory, too_slow, failed, not_tried };
const char* to_string(ProbeOutcome outcome);

// What one set of values did.
struct TuneReading {
  ProbeOutcome outcome = ProbeOutcome::failed;
  double speed = 0;        // seconds of sound, tokens or clips a second
  double deviation = 0;    // of the steps' seconds, as a share of their mean
  double peak_bytes = 0;   // of the fullest device
  double limit_bytes = 0;  // that device's memory; 0: no limit
  double wait_share = 0;   // of the steps' time, waiting for data
  double seconds = 0;      // the measurement took, start of the program included
  int64_t clips = 0;       // that the data has; 0: not known
  std::string words = {};  // why it failed
  int64_t steps = 0;       // that were measured; 0: not known
  std::string how = {};    // it was measured, where not all of it was: "100 of 1503 tokens, …"
  bool fits() const { return outcome == ProbeOutcome::fits; }
};

// The share by which two speeds may differ and still be the same: the standard errors of both
// means. At most `most`, and that where they are not known; at least 1 %, by which a GPU differs
// from itself a minute later.
double in_doubt(const TuneReading& one, const TuneReading& other, double most);

struct BatchSearch {
  int64_t first = 16;                        // where to begin
  int64_t most = 4096;                       // never more
  double fixed_bytes = 0, bytes_a_clip = 0;  // the byte model; 0: not known
  double used_share = 0.875;                 // of the memory: an eighth stays free
  double tolerance = 0.05;
  bool speed_counts = true;  // false: the largest that fits, however fast
  // From `first` up, twice as many each time, as long as that is faster; else by memory, from the
  // largest down. Where a measurement takes as long as its batch is large.
  bool climbs = false;
  int most_probes = 12;
};

struct BatchChoice {
  int64_t batch = 0;     // 0: not even one clip fits
  int64_t largest = 0;   // that was seen to fit and leaves the share free
  bool limited = false;  // by memory: more than `largest` does not fit, or leaves less free
  int probes = 0;
  TuneReading reading;  // of `batch`
};

using MeasureBatch = std::function<TuneReading(int64_t batch)>;
// True: measure no more.
using Enough = std::function<bool()>;
// Until the time is up. Empty: nobody keeps it but Enough.
using SecondsLeft = std::function<double()>;

// The fastest batch that fits; of those that are as fast, the smallest.
BatchChoice search_batch(const BatchSearch& search, const MeasureBatch& measure,
                         const Enough& enough, const SecondsLeft& left = {});

// Threads or queue places, of which fewer are better: halved while nothing is lost by it, doubled
// while something is gained. `now` is the reading at `current`.
struct DepthSearch {
  int64_t current = 16, least = 1, most = 64;
  double tolerance = 0.05;
  double wait_allowed = 0.01;  // share of the time waiting for data that is nothing
  int most_probes = 4;
};
std::pair<int64_t, TuneReading> search_depth(const DepthSearch& search, const TuneReading& now,
                                             const std::function<TuneReading(int64_t)>& measure,
                                             const Enough& enough);

}  // namespace tandem
