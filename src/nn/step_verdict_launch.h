// The GPU side of step_verdict.cpp.
#pragma once

#include <vector>

#include "nn/step_verdict_cell.h"

namespace tandem {

constexpr int64_t squares_parts = 1056;  // of a gradient, at most: eight blocks a multiprocessor

struct VerdictNumbersAt {
  const float *learning_rate, *divisor;
  float *values, *outcome;
};

// partial [gradients * squares_parts] float64.
void decide_step_cuda(const std::vector<at::Tensor>& gradients, const VerdictNumbersAt& at,
                      const VerdictPlaces& memory, const VerdictNumbers& rule,
                      const at::Tensor& partial);

}  // namespace tandem
