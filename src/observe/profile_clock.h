// Marks in a device's own time. On a GPU each is an event in one of its streams, so that asking for
// the time makes nobody wait; elsewhere work runs at once and the host's clock is the device's.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "util/clock.h"

namespace tandem {

class LogicalDevice;
class Stream;

class DeviceClock {
 public:
  // Seconds count from `origin`. On a GPU it waits for the device, once; `most` events are made
  // then, so that none is made between the marks (more are made when they run out).
  DeviceClock(LogicalDevice& device, Clock::time_point origin, size_t most);
  ~DeviceClock();
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  // "When everything queued so far has run", on a stream of the device (none: the compute stream).
  // By one thread at a time.
  void mark(Stream* stream = nullptr);
  size_t marks() const { return marks_; }
  // Of every mark, in seconds since the origin. Waits for the device.
  std::vector<double> seconds();

 private:
  struct Events;
  LogicalDevice& device_;
  Clock::time_point origin_;
  size_t marks_ = 0;
  std::vector<double> host_;
  std::unique_ptr<Events> events_;
};

}  // namespace tandem
