// How the learning rate moves over a run: a pure function of the step, so that resuming is looking
// it up. Steps count from 1.
//
// Every shape begins with a warm-up: step n of `warmup_steps` learns with n / warmup_steps of the
// peak. The shape itself begins at its last step, or at step 1 where there is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct TrainingConfig;

struct ScheduleOptions {
  // constant | cosine (half a wave down to `lowest` at the last step) | restarts (such waves one
  // after another, each twice as long) | noam (falls with the root of the step) | multistep
  std::string shape = "constant";
  double peak = 1e-3;
  int64_t warmup_steps = 0;
  double lowest = 0.1;         // cosine, restarts: share of the peak
  int64_t first_cycle = 1000;  // restarts: steps
  // multistep: behind each of these steps the rate is multiplied by `factor`.
  std::vector<int64_t> milestones = {};
  double factor = 0.5;
  double milestone_unit = 1;  // steps one milestone counts: those of an epoch in Coqui's way
};

// "900000,2700000" in rising order. Throws Error(config) that names the part that is no step.
std::vector<int64_t> parse_milestones(const std::string& text);

// With `compat: coqui` milestones count epochs, and a constant rate is Coqui's multistep.
ScheduleOptions schedule_options(const TrainingConfig& training, double steps_an_epoch);

// Finite, between 0 and the peak, for any step and any total. Throws Error(config) for a shape that
// does not exist.
double learning_rate_at(const ScheduleOptions& options, int64_t step, int64_t total_steps);

}  // namespace tandem
