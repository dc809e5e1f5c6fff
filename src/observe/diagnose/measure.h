// Measures a subject: first the headspace (steps that replay one batch, with the feed at rest),
// then the stages one by one, then the feed and the steps together.
#pragma once

#include <functional>

#include "observe/diagnose/figures.h"
#include "observe/diagnose/subject.h"

namespace tandem {

struct ClockReading {
  int index = 0;      // of the GPU, as the user calls it
  double clock = -1;  // share of the highest
  bool braked = false, power_capped = false;
  double mhz = 0, highest_mhz = 0;   // 0: not known
  std::vector<std::string> reasons;  // of the driver, for this clock
};

struct MeasureOptions {
  int64_t batches = 50;       // of the feed at work, the warm-up among them
  double most_seconds = 60;   // of the replay, and of the fed steps as far as the replay tells
  double sample_every = 0.1;  // seconds between readings of the devices
  // Of the GPUs that have clocks; asked beside the steps, on a thread of its own.
  std::function<std::vector<ClockReading>()> read_clocks = {};
};

Figures measure(Subject& subject, const MeasureOptions& options);

// What NVML says of the visible GPUs; nothing where there is none.
std::vector<ClockReading> read_gpu_clocks();

}  // namespace tandem
