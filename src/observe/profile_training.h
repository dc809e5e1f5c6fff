// The profile of a stage's training on this machine's devices: real steps on real batches, thrown
// away afterwards. Nothing is written to a run's folder.
//
//   Profile profile = profile_training(config, {.steps = 20});
//   print(profile_text(profile));
//
// Three sections follow each other: steps whose parts are timed (the figures), steps whose
// operations and kernels are traced as well (the tables and the trace), and one batch again and
// again with and without all that, which tells what the profiling itself costs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/feed/feed.h"
#include "observe/profile_kernels.h"
#include "observe/profile_limits.h"
#include "observe/profile_operations.h"
#include "observe/profile_recorder.h"

namespace tandem {

class LogicalDevice;
struct Config;

struct ProfileOptions {
  int64_t steps = 20;        // timed
  int64_t traced_steps = 5;  // at most; fewer when `steps` are fewer
  int64_t warm_up = 4;       // the first runs as it is, the second is captured
  int64_t cost_rounds = 5;   // of measuring the profiling itself; 0: not
  bool limits = true;        // measure what the device can do
};

// One replica.
struct ProfiledReplica {
  LogicalDevice* device = nullptr;
  std::vector<RecordedStep> timed, traced;
  DeviceLimits limits;
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
  double timing() const { return plain > 0 ? timed / plain - 1 : 0; }
  double tracing() const { return plain > 0 ? traced / plain - 1 : 0; }
};

struct Profile {
  std::string stage, precision;
  std::vector<std::string> phases;  // by number
  int64_t rows = 0, accumulation = 1;
  double tokens_a_step = 0;
  LogicalDevice* data_device = nullptr;
  std::vector<ProfiledReplica> replicas;
  OperationRecord operations;  // of the traced steps
  KernelRecord kernels;
  ProfileCost cost;
};

// Needs configured devices. Throws Error as training does.
Profile profile_training(const Config& config, const ProfileOptions& options);

}  // namespace tandem
