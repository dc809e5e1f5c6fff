// The figures of a run, finished or going, from the counters in its folder: metrics.jsonl (step
// times, waits, captures), timeline.jsonl (devices, queues), events.jsonl (memory), config.yaml.
#pragma once

#include "observe/diagnose/figures.h"
#include "observe/run_record.h"

namespace tandem {

struct RecordedRun {
  Figures figures;
  Circumstances now;
};

// Throws Error(data) for a run that has not done enough steps to be judged.
RecordedRun recorded_figures(const std::filesystem::path& folder);

}  // namespace tandem
