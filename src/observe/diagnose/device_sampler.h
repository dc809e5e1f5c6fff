// Reads the devices again and again, on a thread of its own beside the steps. Private to `measure`.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "observe/device_load.h"
#include "observe/diagnose/measure.h"

namespace tandem {

class DeviceSampler {
 public:
  // `options` must outlive it.
  DeviceSampler(std::vector<LogicalDevice*> devices, const MeasureOptions& options)
      : load_(std::move(devices)), options_(options), thread_([this] { work(); }) {}
  ~DeviceSampler() { stop(); }
  DeviceSampler(const DeviceSampler&) = delete;
  DeviceSampler& operator=(const DeviceSampler&) = delete;
  void stop();
  void forget();  // what was read so far
  // After stop.
  void fill(DeviceFigures& device) const;

 private:
  void work();
  DeviceLoad load_;
  const MeasureOptions& options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<std::vector<DeviceReading>> readings_;
  std::vector<ClockReading> clocks_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tandem
