// Whether a step of the optimizer is taken, and the numbers AdamW takes it by, decided where the
// gradients are: nothing waits for the host, and on a GPU it is two kernels where tensor operations
// would be sixty.
//
// A step is left out whose gradients are not finite, and a spike: a norm that is many times the
// median of the last ones. A norm of 0 is good and says nothing of what is usual, and a part that
// has had no other takes no step: it does not learn yet. Spikes that stay are the new usual, and
// what was usual before is forgotten; spikes that come again and again end a run.
#pragma once

#include <ATen/core/TensorBody.h>

#include <vector>

#include "nn/adamw.h"

namespace tandem {

// Good steps that make up for one left out as a spike.
constexpr int64_t wear_of_a_spike = 10;

struct VerdictRule {
  double beta1 = 0.9, beta2 = 0.96;
  double average_decay = 0;  // of the moving average, at most
  double largest_norm = 0;   // gradients are scaled down to it; 0: never
  double spike_factor = 20;  // times the median; 0: only what is not finite
  int64_t least = 20;        // norms seen until spikes are looked for
  int64_t patience = 3;      // spikes left out in a row; the next one is the new usual
  // Steps left out in a row, for whatever reason, or spikes that no good steps made up for, behind
  // which none is taken any more: the run ends when the host hears of them, and what is left shows
  // why. 0: no such end.
  int64_t most_bad = 0;
};

// At fixed addresses; a checkpoint keeps all but `bad` and `worn`: a run that goes on is given
// another chance.
struct VerdictMemory {
  explicit VerdictMemory(const at::Device& device, int64_t window = 100);

  at::Tensor norms;   // [window] float32, infinity where none was seen
  at::Tensor count;   // [] int64, norms seen
  at::Tensor spikes;  // [] int64, left out one after another
  at::Tensor steps;   // [] float64, taken
  at::Tensor bad;     // [] int64, steps left out one after another
  at::Tensor worn;    // [] int64, wear_of_a_spike for each spike less one for each good step
};

// Writes `values` [adamw_values]. Returns [2] float32: the norm, and 1 for a good step, else 0.
// `gradients` float32 or bfloat16, flat, a multiple of adamw_chunk numbers each; `learning_rate`
// and `divisor` [] float32: gradients count divided by it.
at::Tensor decide_step(const std::vector<at::Tensor>& gradients, const at::Tensor& learning_rate,
                       const at::Tensor& divisor, VerdictMemory& memory, const VerdictRule& rule,
                       at::Tensor& values);

// The verdict alone, on the CPU: whether a step with this norm is good; `memory` learns of it.
bool judge_norm(float norm, VerdictMemory& memory, const VerdictRule& rule);
// Above it a norm is a spike. On the CPU.
float spike_limit(const VerdictMemory& memory, const VerdictRule& rule);

}  // namespace tandem
