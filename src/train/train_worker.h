// What one replica's thread keeps during a run. Private to TrainRun.
#pragma once

#include <cmath>

#include "train/train_run.h"
#include "util/clock.h"

namespace tandem {

struct TrainRun::Worker {
  Worker(TrainRun& run, int at_rank)
      : rank(at_rank),
        replica(run.replica(at_rank)),
        reader(replica.device()),
        guard({.max_bad_steps = bad_steps_allowed(run.config_.training),
               .spike_factor = run.config_.training.spike_factor}),
        early_stop({.patience = run.config_.training.early_stop_patience},
                   {.best = run.state_.best_loss.value_or(INFINITY),
                    .best_step = run.state_.best_step,
                    .counted = run.state_.counted_loss.value_or(INFINITY),
                    .waited = run.state_.validations_without_gain}),
        terms(replica.learner().terms()) {}
  const int rank;
  Replica& replica;
  LossReader reader;
  StepGuard guard;
  EarlyStop early_stop;
  const std::vector<std::string> terms;
  std::optional<BatchLease> batch;  // the last one, until the next is asked for
  bool finished = false;            // nothing is left to do
  bool owes_checks = false;         // see RunState
  bool best = false;                // the validation behind the last step was the best so far
};

}  // namespace tandem
