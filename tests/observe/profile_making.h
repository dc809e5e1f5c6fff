// A profile made by hand, whose every figure is known: two phases, two timed steps of 100 ms and
// one traced, on a simulated device.
#pragma once

#include "device/logical_device.h"
#include "device/simulated.h"
#include "observe/profile.h"
#include "observe/profile_summary.h"

namespace tandem::tests {

inline RecordedPart made_part(StepPart part, int phase, int piece, double start, double end,
                              uint64_t used) {
  return {.kind = &kind_of(part),
          .phase = phase,
          .piece = piece,
          .host = {start, end},
          .device = {start, end},
          .used = used};
}

// `wait` seconds of 0.1 are spent waiting for data, 2 ms are no part's.
inline RecordedStep made_step(int64_t number, double start, double wait) {
  RecordedStep step{.step = number,
                    .host = {start, start + 0.1},
                    .device = {start, start + 0.1},
                    .used = 1000,
                    .parts = {}};
  const double pass = start + wait;
  step.parts = {made_part(StepPart::wait, 0, 0, start, pass, 1000),
                made_part(StepPart::pass, 0, 0, pass, start + 0.05, 5000),
                made_part(StepPart::pass, 0, 1, start + 0.05, start + 0.06, 4000),
                made_part(StepPart::optimizer, 0, 0, start + 0.06, start + 0.07, 1000),
                made_part(StepPart::pass, 1, 0, start + 0.07, start + 0.09, 3000),
                made_part(StepPart::read_back, 0, 0, start + 0.092, start + 0.1, 1000)};
  return step;
}

inline Profile made_profile(LogicalDevice& device) {
  Profile profile{.stage = "decoder",
                  .precision = "fp32",
                  .phases = {"discriminator", "generator"},
                  .rows = 8,
                  .tokens_a_step = 500,
                  .data_device = nullptr};
  ProfiledReplica replica{.device = &device,
                          .timed = {made_step(5, 1.0, 0.01), made_step(6, 1.1, 0.03)},
                          .traced = {made_step(7, 1.3, 0.02)},
                          .limits = {.flops = 1e9, .bytes = 1e8},
                          .memory = {{"weights", 600}, {"gradients", 400}},
                          .most_used = 5000,
                          .largest_rise = 4000,
                          .feed = {},
                          .wall = 0.2};
  profile.replicas.push_back(std::move(replica));
  // 10 ms of a product inside 20 ms of a linear layer, and a copy on a thread of the feed, half of
  // which lies in the wait.
  OperationRecord& record = profile.operations;
  record.names = {"aten::linear", "aten::mm", "aten::copy_"};
  record.threads = {"replica-0", "feed"};
  record.thread_ids = {4711, 4712};
  record.operations = {{.name = 1,
                        .thread = 0,
                        .device = &device,
                        .start = 1.325,
                        .end = 1.335,
                        .self = 0.01,
                        .flops = 2e6,
                        .bytes = 1e5,
                        .used = 4500},
                       {.name = 0,
                        .thread = 0,
                        .device = &device,
                        .start = 1.32,
                        .end = 1.34,
                        .self = 0.01,
                        .used = 5000},
                       {.name = 2,
                        .thread = 1,
                        .device = &device,
                        .start = 1.31,
                        .end = 1.33,
                        .self = 0.02,
                        .bytes = 1e6,
                        .used = 4500}};
  return profile;
}

// Profiles anew until a replica's parts add up to its steps, and its steps to the clock, within
// 3 %; five times at most. On a busy machine a thread is taken off its core between two parts, and
// that time is nobody's.
template <class Make>
Profile profile_in_a_quiet_moment(const Make& make) {
  Profile profile = make();
  for (int again = 0; again < 4; ++again) {
    bool quiet = true;
    for (const ProfiledReplica& replica : profile.replicas) {
      const StepFigures figures = step_figures_of(profile, replica);
      quiet &= figures.accounted > 0.97 && figures.mean > 0.97 * figures.wall;
    }
    if (quiet) break;
    profile = make();
  }
  return profile;
}

}  // namespace tandem::tests
