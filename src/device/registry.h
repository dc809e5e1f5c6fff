// The logical devices of this process: set once by configure_devices, before any of them is used.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/logical_device.h"
#include "device/probe.h"

namespace tandem {

class DeviceRegistry {
 public:
  static DeviceRegistry& get();

  // `probe` describes the visible hardware; `dual`: gpus[0] prepares data, the others hold the
  // model.
  void configure(GpuProbe probe, std::vector<LogicalDeviceInfo> gpus, bool dual);

  const std::vector<std::unique_ptr<LogicalDevice>>& gpus() const { return gpus_; }
  LogicalDevice& cpu() { return *cpu_; }
  const GpuProbe& probe() const { return probe_; }
  bool configured() const { return configured_; }
  bool dual() const { return dual_; }

  // "/GPU:1", "/gpu:1", "gpu:1", "/CPU:0"; throws Error(device) for any other.
  LogicalDevice& find(const std::string& name);

  // The first use of a GPU freezes the configuration; what that use was is kept for the error
  // message.
  void note_use(const LogicalDevice& device);
  std::string first_use() const;

 private:
  DeviceRegistry();
  GpuProbe probe_;
  std::unique_ptr<LogicalDevice> cpu_;
  std::vector<std::unique_ptr<LogicalDevice>> gpus_;
  bool configured_ = false, dual_ = false;
  std::atomic<bool> used_{false};
  mutable std::mutex mutex_;
  std::string first_use_;
};

}  // namespace tandem
