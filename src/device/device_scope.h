// Where the work of this thread runs. While a scope is open, tensors made with `options()` live on
// its device, memory is charged to its ledger, operations are counted as its own, and on CUDA its
// compute stream is current. Scopes nest; each must end on the thread that began it, in reverse
// order.
//
//   DeviceScope scope(device);
//   auto x = at::zeros({8}, scope.options());
#pragma once

#include <ATen/core/TensorBody.h>

#include <memory>

namespace tandem {

class LogicalDevice;

class DeviceScope {
 public:
  explicit DeviceScope(LogicalDevice& device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  LogicalDevice& device() const { return device_; }
  at::TensorOptions options() const;

  // The device of the innermost open scope of this thread, or the owner of its CUDA stream, or
  // nullptr.
  static LogicalDevice* current();

 private:
  struct CudaGuards;
  LogicalDevice& device_;
  LogicalDevice* outer_;
  std::unique_ptr<CudaGuards> cuda_;
};

// Call it on a tensor that was made on another device's stream and is read by what this thread has
// just queued: its memory is then not given away before that has run. Does nothing off CUDA.
void hold_for_current_stream(const at::Tensor& tensor);

}  // namespace tandem
