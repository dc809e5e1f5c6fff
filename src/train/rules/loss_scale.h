// The factor that keeps small gradients alive in float16: losses are multiplied by it, gradients
// divided. It doubles after 2000 good steps in a row and halves on each step whose gradients
// overflowed. All on the device, at fixed addresses: nothing waits, and a captured step may update
// it.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cmath>
#include <cstdint>

#include "nn/parameters.h"

namespace tandem {

struct LossScaleOptions {
  double first = 65536, smallest = 1, largest = 16777216;  // powers of two: exact to divide by
  double growth = 2, backoff = 0.5;
  int64_t growth_steps = 2000;
  // Steps that overflow, at most, until the scale has come down as far as it goes.
  int64_t halvings() const {
    return static_cast<int64_t>(std::ceil(std::log(smallest / largest) / std::log(backoff)));
  }
};

class LossScale {
 public:
  LossScale(const LossScaleOptions& options, at::Device device);

  const at::Tensor& scale() const { return scale_; }  // [] float32
  // After a step whose gradients, divided by the scale, had this norm: [] float32 on the device.
  void update(const at::Tensor& norm);

  // Views of the state, for checkpoints and checksums.
  NamedTensors state() const { return {{"loss_scale", scale_}, {"loss_scale.good", good_}}; }
  // Throws Error(corrupt) for a state that lacks one or has another shape.
  void load_state(const NamedTensors& state);

 private:
  LossScaleOptions options_;
  at::Tensor scale_, good_;  // good_ [] int64: good steps since the last change
};

}  // namespace tandem
