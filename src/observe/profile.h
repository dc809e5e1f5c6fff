// What a profile found: of a stage's training (profile_training.h) or of generating
// (profile_generate.h). profile_summary.h, profile_trace.h and profile_report.h show it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/feed/feed.h"
#include "observe/profile_attribution.h"
#include "observe/profile_kernels.h"
#include "observe/profile_limits.h"
#include "observe/profile_operations.h"
#include "observe/profile_recorder.h"

namespace tandem {

class LogicalDevice;

struct ProfileOptions {
  int64_t steps = 20;        // timed
  int64_t traced_steps = 5;  // at most; fewer when `steps` are fewer
  int64_t warm_up = 4;       // the first runs as it is, the second is captured
  int64_t cost_rounds = 5;   // of measuring the profiling itself; 0: not
  bool limits = true;        // measure what the device can do, and on a GPU the work of kernels
};

// One replica, or one engine.
struct ProfiledReplica {
  LogicalDevice* device = nullptr;
  int64_t rows = 0;  // clips of a batch, of an engine
  std::vector<RecordedStep> timed, traced;
  DeviceLimits limits;
  KernelRates rates;                                     // of a GPU's kernels; empty: not known
  std::vector<std::pair<std::string, uint64_t>> memory;  // bytes by part, what is left last
  uint64_t most_used = 0;                                // bytes, of all moments that were seen
  uint64_t largest_rise = 0;  // bytes above the beginning of a step: what passes keep
  FeedCounters feed;
  double wall = 0;       // seconds of the timed steps by the host's clock, queue emptied
  int64_t captures = 0;  // of graphs, while steps were timed
};

// Seconds a step over the same batch, of the fastest round each.
struct ProfileCost {
  double plain = 0, timed = 0, traced = 0;
  double noise = 0;  // by what share the two fastest rounds of one kind differ, of the worst kind
  double timing() const { return plain > 0 ? timed / plain - 1 : 0; }
  double tracing() const { return plain > 0 ? traced / plain - 1 : 0; }
  // Whether the three can be compared: on a machine busy with other things they cannot, which also
  // shows in profiled steps that seem to be faster.
  bool told() const {
    constexpr double most = 0.05;
    return plain > 0 && noise <= most && timing() >= -most && tracing() >= -most;
  }
};

// Of generating, beside the parts of a batch that is alone on its device.
struct MusicFigures {
  int64_t decoding_steps = 0;             // of a timed batch
  int64_t tokens = 0, traced_tokens = 0;  // new ones a clip: timed, traced
  // Batches that follow each other, as in a run: sound is made while the next one is decoded.
  int64_t following = 0;         // how many did; 0: not measured
  double following_seconds = 0;  // all of them, the last one's sound included
};

struct Profile {
  std::string stage, precision;     // stage: of training, or "generate"
  std::vector<std::string> phases;  // by number
  int64_t rows = 0, accumulation = 1;
  double tokens_a_step = 0;
  LogicalDevice* data_device = nullptr;
  std::vector<ProfiledReplica> replicas;
  OperationRecord operations;  // of the traced steps
  KernelRecord kernels;
  std::string work_failure;  // why the work of kernels is not known; empty: nothing went wrong
  ProfileCost cost;
  std::optional<MusicFigures> music;
  bool generates() const { return music.has_value(); }
};

}  // namespace tandem
