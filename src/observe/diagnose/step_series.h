// Steps run one after another on one thread, and what is seen of them there. Private to `measure`.
#pragma once

#include "observe/diagnose/subject.h"
#include "observe/diagnose/thread_time.h"

namespace tandem {

struct StepSeries {
  std::vector<double> seconds, waits;  // of each step
  std::vector<bool> settled;           // of each: no graph was captured, or would have been
  double settled_before = 1;           // share of the steps that came before the first of these
  SpentTime launch;                    // of the counted steps, without waiting for batches
  size_t counted = 0;                  // steps after the warm-up

  // Of the settled steps alone, where there are enough of them.
  std::vector<double> of_settled(const std::vector<double>& values) const;

  double launches(double sum) const { return counted ? sum / static_cast<double>(counted) : 0; }
};

struct SeriesRequest {
  int rank = 0;
  int64_t steps = 0;
  // Before these: until no graph was captured for a while, at most as many (all of them where there
  // are several ranks, which must come to every step together).
  int64_t settling = 0;
  Subject::NextBatch next;
  std::function<void()> warm = {};  // called once, when the warm-up ends
};

// No step waits for the one before it; the host is at most two steps ahead of the device, as in a
// training.
StepSeries run_steps(Subject& subject, const SeriesRequest& request);
// One thread a rank. The first failure is thrown once all have ended.
std::vector<StepSeries> on_all_ranks(Subject& subject,
                                     const std::function<SeriesRequest(int rank)>& request);

}  // namespace tandem
