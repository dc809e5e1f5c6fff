// Small checkpoints whose every part tells which step it belongs to.
#pragma once

#include <ATen/ATen.h>

#include "checkpoint/run_folder.h"

namespace tandem::tests {

inline Checkpoint checkpoint_of(int64_t step, bool finished = false) {
  const auto value = static_cast<double>(step);
  return {
      .weights = {{"a.weight", at::full({3, 2}, value)}, {"b", at::full({}, value, at::kBFloat16)}},
      .optimizer = {{"a.weight.mean", at::full({3, 2}, -value)}},
      .state = {.step = step,
                .next_batch = 2 * step,
                .finished = finished,
                .best_loss = value / 3,
                .last_loss = value / 7}};
}

inline const at::Tensor& find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return tensor;
  }
  throw std::out_of_range(name);
}

}  // namespace tandem::tests
