#include <algorithm>

#include "observe/diagnose/feed_rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem::rules {

bool copies_on_demand(const Circumstances& now) {
  const DataConfig& data = now.config.data;
  return !now.data_on_model && (!data.prefetch_to_gpu || !data.optimize_cpu_gpu_overlap);
}

Stages stages_of(const Figures& figures, const Circumstances& now) {
  const auto workers = static_cast<double>(std::max<int64_t>(1, now.config.data.num_workers));
  Stages stages{.host = figures.host.wall / workers,
                .prepare = figures.prepare,
                .move = figures.move,
                .step = figures.replay.mean / figures.batches_a_step};
  // A device that prepares and trains one after the other needs the time of both for a batch.
  if (now.takes_turns && figures.prepare > limits::worth_changing * stages.step)
    stages.prepare += stages.step;
  // So does a batch that is copied when it is asked for.
  if (copies_on_demand(now) && figures.move > limits::worth_changing * stages.step)
    stages.move += stages.step;
  return stages;
}

double gain_of(const Figures& figures, double batch) {
  const double step = std::max(figures.replay.mean, batch * figures.batches_a_step);
  return figures.fed.mean > 0 ? std::clamp(1 - step / figures.fed.mean, 0.0, 1.0) : 0;
}

Evidence headspace(const Figures& figures) {
  return {"headspace", lost_share(figures), "share of a fed step that a replay saves"};
}

}  // namespace tandem::rules
