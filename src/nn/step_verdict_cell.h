// The arithmetic of a verdict, the same on the CPU and a GPU, where one thread does it.
#pragma once

#include <cmath>
#include <cstdint>

#include "nn/adamw.h"
#include "nn/float_bits.h"

namespace tandem {

struct VerdictNumbers {
  double beta1, beta2;
  float average_decay, largest_norm, spike_factor;
  int64_t window, least, patience, most_bad, wear;
};

struct VerdictPlaces {
  float* norms;
  int64_t *count, *spikes;
  double* steps;
  int64_t *bad, *worn;
};

// Which of the norms in order is the median: places without a norm are infinite and come last.
TANDEM_CELL int64_t middle_of(int64_t count, int64_t window) {
  const int64_t seen = count < window ? count : window;
  return seen > 0 ? (seen - 1) / 2 : 0;
}

TANDEM_CELL float limit_of(float median, int64_t count, const VerdictNumbers& n) {
  return n.spike_factor == 0 || count < n.least ? HUGE_VALF : median * n.spike_factor;
}

// `limit` of the norms before this one. Norms that stay high are no spike but where training has
// gone; clipping deals with them.
TANDEM_CELL bool judge_cell(float norm, float limit, const VerdictPlaces& at,
                            const VerdictNumbers& n) {
  const bool finite = norm - norm == 0;
  const bool ended = n.most_bad > 0 && *at.bad >= n.most_bad;
  const bool high = finite && norm > limit;
  const bool good = finite && !ended && (!high || *at.spikes >= n.patience);
  *at.bad = good ? 0 : *at.bad + 1;
  if (good) {
    *at.worn = *at.worn > 0 ? *at.worn - 1 : 0;
  } else if (high && !ended) {
    *at.worn += n.wear;
  }
  if (n.most_bad > 0 && *at.worn >= n.most_bad * n.wear && *at.bad < n.most_bad)
    *at.bad = n.most_bad;
  // The step with which a run ends finds, taken again, what it found.
  const bool ends = n.most_bad > 0 && *at.bad >= n.most_bad;
  if (good) {
    *at.spikes = 0;
  } else if (finite && !ends) {
    ++*at.spikes;
  }
  if (good && high) {
    for (int64_t i = 0; i < n.window; ++i) at.norms[i] = HUGE_VALF;
    *at.count = 0;
  }
  if (good && norm > 0) at.norms[(*at.count)++ % n.window] = norm;
  return good;
}

// `norm` is already divided.
TANDEM_CELL void write_values(float norm, bool good, float learning_rate, float divisor,
                              const VerdictPlaces& at, const VerdictNumbers& n, float* values,
                              float* outcome) {
  // Without gradients so far there is nothing to step by, and nothing to correct later.
  const bool taken = good && (norm > 0 || *at.steps > 0);
  if (taken) *at.steps += 1;
  const double steps = *at.steps, average = (steps + 1) / (steps + 10);
  float factor = 1 / divisor;
  if (n.largest_norm > 0) factor *= fminf(n.largest_norm / (norm + 1e-6f), 1);
  values[adamw_learning_rate] = learning_rate;
  values[adamw_correction1] = static_cast<float>(1 - pow(n.beta1, steps));
  values[adamw_correction2] = static_cast<float>(1 - pow(n.beta2, steps));
  values[adamw_factor] = factor;
  // The average of few steps must not hold on to where they began.
  values[adamw_average] = fminf(static_cast<float>(average), n.average_decay);
  values[adamw_good] = taken ? 1.f : 0.f;
  outcome[0] = norm;
  outcome[1] = good ? 1.f : 0.f;
}

}  // namespace tandem
