// What a step measured comes to the host some steps after it was computed, so that no step waits
// for the host. In order, and always the same number of steps late on a GPU, so that what is
// decided by it is decided at the same step every time; on the CPU and on simulated devices at
// once.
#pragma once

#include <ATen/core/TensorBody.h>

#include <deque>
#include <functional>
#include <vector>

#include "device/stream.h"

namespace tandem {

class LogicalDevice;

class LossReader {
 public:
  using Deliver = std::function<void(const std::vector<double>& values)>;
  explicit LossReader(LogicalDevice& device) : device_(device) {}

  // `values` [n]. `deliver` is called, on this thread, in a later push or in drain.
  void push(const at::Tensor& values, Deliver deliver);
  void drain();

 private:
  struct Pending {
    at::Tensor values;  // on the host
    Event copied;
    Deliver deliver;
  };
  void deliver_first();
  LogicalDevice& device_;
  std::deque<Pending> pending_;
};

}  // namespace tandem
