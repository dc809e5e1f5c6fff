// A device as the rest of Tandem sees it: the CPU, a simulated GPU, a real GPU, or a share of one.
// Named /CPU:0 or /GPU:<index>, where the index counts after the remap (data is 0, models follow).
//
// Logical devices live in the registry until the process ends; pointers to them stay valid.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "device/memory_ledger.h"
#include "device/stream.h"

namespace tandem {

enum class DeviceKind { cpu, simulated, cuda };

// Tensor operations seen on one device, by name. Counted while `count_operations` is on.
class OperationCounter {
 public:
  void add(std::string_view name);
  uint64_t total() const { return total_; }
  std::map<std::string, uint64_t> by_name() const;
  void reset();

 private:
  std::atomic<uint64_t> total_{0};
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t, std::less<>> names_;
};

struct LogicalDeviceInfo {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;           // after the remap
  int original_index = 0;  // what the user calls it
  int cuda_index = -1;     // the CUDA device of this process that carries it
  std::string hardware;    // "NVIDIA H200", "simulated GPU"
  uint64_t memory_limit = 0;
  bool hard_limit =
      false;  // the limit was asked for (memory isolation), not only the size of the share
  double slowness = 1.0;  // simulated: every task takes this many times as long
};

class LogicalDevice {
 public:
  explicit LogicalDevice(LogicalDeviceInfo info);
  ~LogicalDevice();

  DeviceKind kind() const { return info_.kind; }
  int index() const { return info_.index; }
  int original_index() const { return info_.original_index; }
  const LogicalDeviceInfo& info() const { return info_; }
  std::string name() const;
  c10::Device torch_device() const;

  MemoryLedger& memory() { return memory_; }
  OperationCounter& operations() { return operations_; }

  // The device's own in-order queues. Made on first use, which initialises the device.
  Stream& compute_stream();
  Stream& copy_stream();
  // Where data is prepared beside the training: a stream of its own on a real GPU, the one in-order
  // queue (compute_stream) on a simulated one.
  Stream& preparation_stream();

 private:
  LogicalDeviceInfo info_;
  MemoryLedger memory_;
  OperationCounter operations_;
  std::once_flag compute_once_, copy_once_, preparation_once_;
  std::unique_ptr<Stream> compute_, copy_, preparation_;
};

// Counting every tensor operation costs about a tenth of a microsecond each; on by default only
// where devices are simulated.
void count_operations(bool on);

}  // namespace tandem
