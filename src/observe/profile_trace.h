// The profile as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: the trace event
// format, JSON.
//
//   process "/GPU:1"   a row of the step and its parts by the device's time, a row a stream of
//                      kernels, a counter of its memory
//   process "host"     a row a thread: steps, parts, operations by the host's time
//
// Times are microseconds since the profile began, with nanoseconds as fractions.
#pragma once

#include <cstdint>
#include <string>

#include "observe/profile.h"

namespace tandem {

struct TraceCounts {
  int64_t steps = 0, parts = 0;  // on the devices; the host's row has as many again
  int64_t operations = 0, kernels = 0, readings = 0;
  int64_t left_out = 0;  // kernels, behind the most that a file holds
  int64_t slices() const { return 2 * (steps + parts) + operations + kernels; }
};

struct ProfileTrace {
  std::string json;
  TraceCounts counts;
};
ProfileTrace make_trace(const Profile& profile);

}  // namespace tandem
