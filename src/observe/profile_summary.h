// What a profile says, in tables: the parts of a step, operations and kernels by time, memory.
#pragma once

#include <string>
#include <vector>

#include "observe/profile_training.h"

namespace tandem {

struct PartRow {
  std::string name;         // "wait for data", "pass generator, piece 2"
  double seconds = 0;       // of a step, on the device, mean
  double deviation = 0;     // seconds, from step to step
  double share = 0;         // of the step
  double host_seconds = 0;  // that the host was in it
};

struct StepFigures {
  int64_t steps = 0;
  double mean = 0, deviation = 0, median = 0, p95 = 0;  // seconds on the device
  double accounted = 0;        // share of the steps' time that the named parts add up to
  double wall = 0;             // seconds a step by the host's clock, the whole queue emptied
  std::vector<PartRow> parts;  // in the order of a step; last what no part accounts for
};
StepFigures step_figures_of(const Profile& profile, const ProfiledReplica& replica);

// "pass generator, piece 2"; phases and pieces are named where there are several.
std::string part_name(const Profile& profile, const RecordedPart& part);

struct WorkRow {
  std::string name;
  double calls = 0, seconds = 0;  // of a step; without what operations call in turn
  double share = 0;               // of the step
  double flops = 0, bytes = 0;    // a second, while it runs; 0: not known
  double limit = 0;               // share of what the device can do; 0: not known
};
// Of the replica's own thread, the longest first.
std::vector<WorkRow> operation_rows(const Profile& profile, size_t rank);
// Of every other thread (reading, preparing, copying), the longest first; no limits.
std::vector<WorkRow> feed_rows(const Profile& profile);
// Of the replica's GPU, the longest first.
std::vector<WorkRow> kernel_rows(const Profile& profile, size_t rank);

// For people, and as one JSON document.
std::string profile_text(const Profile& profile);
std::string profile_json(const Profile& profile);

}  // namespace tandem
