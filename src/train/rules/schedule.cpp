#include "train/rules/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tandem/config.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

namespace {

// From 1 at progress 0 down to `lowest` at 1.
double half_wave(double progress, double lowest) {
  const double wave = (1 + std::cos(std::numbers::pi * std::clamp(progress, 0.0, 1.0))) / 2;
  return lowest + (1 - lowest) * wave;
}

// How far the cycle that `step` (from 0) stands in has come. Cycles are walked, not found with a
// logarithm, which has no value or a wrong one for some lengths.
double cycle_progress(int64_t step, int64_t first_cycle) {
  int64_t length = std::max<int64_t>(first_cycle, 1);
  while (step >= length) {
    step -= length;
    if (length > std::numeric_limits<int64_t>::max() / 2) break;
    length *= 2;
  }
  return static_cast<double>(step) / static_cast<double>(length);
}

double passed_milestones(const ScheduleOptions& options, int64_t step) {
  // Where units do not come out even in steps, the last digit must not decide.
  const double done = static_cast<double>(step - 1) / options.milestone_unit + 1e-9;
  return static_cast<double>(std::ranges::count_if(options.milestones, [&](int64_t milestone) {
    return static_cast<double>(milestone) <= done;
  }));
}

// Share of the peak at a step >= first, where the shape begins.
double share_at(const ScheduleOptions& options, int64_t step, int64_t first, int64_t total) {
  if (options.shape == "constant") return 1;
  if (options.shape == "cosine") {
    if (total <= first) return 1;
    const auto length = static_cast<double>(total - first);
    return half_wave(static_cast<double>(step - first) / length, options.lowest);
  }
  if (options.shape == "restarts")
    return half_wave(cycle_progress(step - first, options.first_cycle), options.lowest);
  if (options.shape == "noam")
    return std::sqrt(static_cast<double>(first) / static_cast<double>(step));
  if (options.shape == "multistep")
    return std::pow(options.factor, passed_milestones(options, step));
  throw Error(ErrorKind::config,
              fmt::format("there is no schedule `{}`; expected constant, cosine, restarts, noam or "
                          "multistep",
                          options.shape));
}

}  // namespace

std::vector<int64_t> parse_milestones(const std::string& text) {
  std::vector<int64_t> out;
  if (trim(text).empty()) return out;
  for (const std::string& part : split(text, ',')) {
    const std::optional<int64_t> step = parse_int(trim(part));
    if (!step || *step < 1) {
      throw Error(ErrorKind::config,
                  fmt::format("`{}` in `training.milestones` (`{}`) is no step; expected whole "
                              "numbers from 1, as in `900000,2700000`",
                              trim(part), text));
    }
    if (!out.empty() && *step <= out.back()) {
      throw Error(ErrorKind::config,
                  fmt::format("`{}` in `training.milestones` (`{}`) does not come after `{}`; "
                              "expected rising steps",
                              *step, text, out.back()));
    }
    out.push_back(*step);
  }
  return out;
}

ScheduleOptions schedule_options(const TrainingConfig& training, double steps_an_epoch) {
  ScheduleOptions options{.shape = training.schedule,
                          .peak = training.learning_rate.value_or(1e-3),
                          .warmup_steps = training.warmup_steps,
                          .lowest = training.final_learning_rate,
                          .first_cycle = training.restart_steps,
                          .factor = training.milestone_factor};
  if (training.compat == "coqui") {
    if (options.shape == "constant") options.shape = "multistep";
    if (steps_an_epoch > 0) options.milestone_unit = steps_an_epoch;
  }
  if (options.shape == "multistep") options.milestones = parse_milestones(training.milestones);
  return options;
}

double learning_rate_at(const ScheduleOptions& options, int64_t step, int64_t total_steps) {
  const int64_t first = std::max<int64_t>(options.warmup_steps, 1);
  step = std::max<int64_t>(step, 0);
  const double share = share_at(options, std::max(step, first), first, total_steps);
  if (step >= first) return options.peak * share;
  return options.peak * share * static_cast<double>(step) / static_cast<double>(first);
}

}  // namespace tandem
