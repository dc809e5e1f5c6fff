// AdamW on a phase's ParameterStore: the norm of its gradients, whether the step is good, clipping
// and the step, all decided on the device.
#pragma once

#include <string>

#include "nn/adamw.h"
#include "nn/parameters.h"
#include "nn/step_verdict.h"
#include "train/parameter_store.h"

namespace tandem {

struct OptimizerOptions {
  AdamWRule rule;
  double largest_norm = 0;   // gradients are scaled down to it; 0: never
  double spike_factor = 20;  // a step is left out whose norm is so many times the usual; 0: none
  int64_t most_bad = 0;      // see VerdictRule
};

// On the device, at fixed addresses, set before each step.
struct OptimizerInputs {
  at::Tensor learning_rate;  // [] float32
  at::Tensor divisor;        // [] float32: gradients are divided by it (accumulation, loss scale)
};

class Optimizer {
 public:
  // `store` must outlive it.
  Optimizer(ParameterStore& store, const OptimizerOptions& options);

  // Updates the weights and clears the gradients. Returns [2] float32: the norm before clipping,
  // and 1 when the step was taken, 0 when it was skipped.
  at::Tensor step(const OptimizerInputs& inputs);

  ParameterStore& store() { return store_; }
  const ParameterStore& store() const { return store_; }
  // What a checkpoint keeps beside the store, under `prefix`: steps taken, usual norms.
  NamedTensors state(const std::string& prefix) const;

 private:
  ParameterStore& store_;
  AdamWRule rule_;
  VerdictRule verdict_;
  VerdictMemory memory_;
  at::Tensor values_;  // [adamw_values]
};

// Copies `source` into `target` by name. Throws Error(corrupt) that lists what is missing, unknown
// or of another shape; `what` names the file for the message.
void copy_by_name(const NamedTensors& source, const NamedTensors& target, const std::string& what);

}  // namespace tandem
