// Losses come to the host some steps after they were computed, so that no step waits for the host.
// In order; on the CPU and on simulated devices at once.
#pragma once

#include <ATen/core/TensorBody.h>

#include <deque>
#include <functional>

#include "device/stream.h"

namespace tandem {

class LogicalDevice;

class LossReader {
 public:
  using Deliver = std::function<void(double loss, double gradient_norm)>;
  explicit LossReader(LogicalDevice& device) : device_(device) {}

  // `deliver` is called, on this thread, in a later push or in drain.
  void push(const at::Tensor& loss, const at::Tensor& gradient_norm, Deliver deliver);
  void drain();

 private:
  struct Pending {
    at::Tensor values;  // [2] on the host
    Event copied;
    Deliver deliver;
  };
  void deliver_first();
  static constexpr size_t most_pending = 8;
  LogicalDevice& device_;
  std::deque<Pending> pending_;
};

}  // namespace tandem
