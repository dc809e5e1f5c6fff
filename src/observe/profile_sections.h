// What profiles of training and of generating have in common: a thread a device, the memory that
// was seen, what the profiling itself costs.
#pragma once

#include <functional>
#include <vector>

#include "observe/profile.h"

namespace tandem {

// `work` on a thread named replica-<rank> for every device, its scope open; waits for all. Of
// several failures the one that is not "a peer failed" is thrown; `failed` hears of each at once.
void on_every_rank(const std::vector<ProfiledReplica>& replicas,
                   const std::function<void(size_t rank)>& work,
                   const std::function<void(size_t rank)>& failed = {});

// Whether a kernel of one of these devices can be traced.
bool any_cuda(const std::vector<ProfiledReplica>& replicas);

// The most that was seen, the largest rise within a step, and, behind what is in `memory` already,
// a part `rest` with what the device held on top of it between steps.
void note_memory(Profile& profile, size_t rank, const char* rest);

struct Settling {
  int64_t quiet = 12;  // steps in a row without a new shape are enough
  int64_t most_steps = 150;
  double most_seconds = 8;
};
// Steps until no shape is met that has no captured graph yet. `unsettled` counts the passes so far
// that were no replays, `take` takes so many steps. Returns how many it were.
int64_t settle_steps(const Settling& settling, const std::function<int64_t()>& unsettled,
                     const std::function<void(int64_t steps)>& take);

// A reading to subtract from a later one. Work on the host is told by the processor time of the
// calling thread, or of the whole program, so that other programs do not count; a GPU's takes as
// long as the clock says.
double seconds_of_work(bool cuda, bool whole_program);

// Seconds a step, of every round.
struct CostRounds {
  std::vector<double> plain, timed, traced;
};
// The fastest of each counts: whatever else the machine does only makes a round slower.
ProfileCost cost_of(const CostRounds& rounds);

// `again` works on the same batch, recorded or not, and returns seconds a step. Plain, recorded and
// traced follow each other `rounds` times, each round beginning with another of them, so that a
// machine that grows slower or faster meanwhile does so for all three; up to twice as often while
// the rounds differ too much to tell.
ProfileCost measure_cost(int64_t rounds, bool cuda, Clock::time_point origin,
                         const std::function<double(bool recorded)>& again);

// Operations of one trace and kernels with them; both stop when it ends.
class DoubleTrace {
 public:
  DoubleTrace(bool cuda, bool linked, Clock::time_point origin);
  void stop(OperationRecord& operations, KernelRecord& kernels);

 private:
  bool cuda_;
  OperationTrace operations_;
  KernelTrace kernels_;
};

}  // namespace tandem
