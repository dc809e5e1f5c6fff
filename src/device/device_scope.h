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

}  // namespace tandem
