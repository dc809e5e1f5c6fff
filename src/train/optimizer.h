// AdamW on a list of parameters, fused over all of them. State lives beside the parameters.
#pragma once

#include <ATen/core/TensorBody.h>

#include <vector>

#include "nn/parameters.h"

namespace tandem {

struct AdamWOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.01;
};

class AdamW {
 public:
  AdamW(NamedTensors parameters, const AdamWOptions& options);

  // Scales the gradients so that their joint norm is at most `most`; returns the norm before, on
  // the device.
  at::Tensor clip_gradients(double most);
  void step();
  void clear_gradients();
  std::vector<at::Tensor> gradients() const;

  NamedTensors state() const;  // "<name>.mean", "<name>.square", "<name>.steps"
  void load_state(const NamedTensors& state);

 private:
  NamedTensors parameters_;
  AdamWOptions options_;
  std::vector<at::Tensor> means_, squares_, steps_;
};

// Copies `source` into `target` by name. Throws Error(corrupt) that lists what is missing, unknown
// or of another shape; `what` names the file for the message.
void copy_by_name(const NamedTensors& source, const NamedTensors& target, const std::string& what);

}  // namespace tandem
