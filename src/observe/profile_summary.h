// What a profile says, in tables: the parts of a step, operations and kernels by time, memory.
#pragma once

#include <string>
#include <vector>

#include "observe/profile.h"

namespace tandem {

// What is timed: "step", or "batch" of clips.
const char* step_word(const Profile& profile);

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
  double seconds_of(const PartKind& kind) const;  // 0: there is no such part
};
StepFigures step_figures_of(const Profile& profile, const ProfiledReplica& replica);

// Of generating, of one engine.
struct BatchFigures {
  double decoding_step = 0;     // seconds
  double clips_per_second = 0;  // of batches one at a time
  // Of batches that follow each other, 0 where that was not measured: seconds each, clips a second,
  // and the share of sound, copy and writing that ran behind the next batch's decoding.
  double following = 0, following_clips_per_second = 0, hidden = 0;
};
BatchFigures batch_figures_of(const Profile& profile, const ProfiledReplica& replica);

// "pass generator, piece 2"; phases and pieces are named where there are several.
std::string part_name(const Profile& profile, const RecordedPart& part);

struct WorkRow {
  std::string name;
  double calls = 0, seconds = 0;  // of a step; without what operations call in turn
  double share = 0;               // of the step
  double flops = 0, bytes = 0;    // a second, while it runs; 0: not known
  double limit = 0;               // share of what the device can do; 0: not known
};
// Whether an operation is part of the steps of a replica, not of what goes on beside them.
bool belongs_to(const Profile& profile, const TracedOperation& operation, size_t rank);
// Of the replica's own steps, the longest first.
std::vector<WorkRow> operation_rows(const Profile& profile, size_t rank);
// Of everything else (reading, preparing, copying), the longest first; no limits.
std::vector<WorkRow> feed_rows(const Profile& profile);
// Of the replica's GPU, the longest first.
std::vector<WorkRow> kernel_rows(const Profile& profile, size_t rank);

// For people, and as one JSON document.
std::string profile_text(const Profile& profile);
std::string profile_json(const Profile& profile);

}  // namespace tandem
