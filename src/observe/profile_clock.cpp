#include "observe/profile_clock.h"

#include <chrono>

#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/cuda/CUDAEvent.h>
#endif

namespace tandem {

#ifdef TANDEM_WITH_CUDA

struct DeviceClock::Events {
  explicit Events(c10::cuda::CUDAStream on) : stream(on) {}
  void make(size_t count) {
    while (events.size() < count) {
      at::cuda::CUDAEvent& event = events.emplace_back(cudaEventDefault);  // keeps its time
      event.record(stream);  // an event is made when it is first recorded
    }
  }
  c10::cuda::CUDAStream stream;
  at::cuda::CUDAEvent base{cudaEventDefault};
  double base_seconds = 0;
  std::vector<at::cuda::CUDAEvent> events;
};

DeviceClock::DeviceClock(LogicalDevice& device, Clock::time_point origin, size_t most)
    : device_(device), origin_(origin) {
  if (device.kind() != DeviceKind::cuda) {
    host_.reserve(most);
    return;
  }
  DeviceScope scope(device);
  events_ = std::make_unique<Events>(raw_cuda_stream(device.compute_stream()));
  events_->make(most);
  device.compute_stream().synchronize();
  // An idle stream passes an event at once: its time and the host's are the same moment.
  events_->base.record(events_->stream);
  events_->base_seconds = std::chrono::duration<double>(Clock::now() - origin_).count();
}

void DeviceClock::mark(Stream* stream) {
  if (!events_) {
    host_.push_back(std::chrono::duration<double>(Clock::now() - origin_).count());
  } else {
    if (marks_ == events_->events.size()) events_->make(marks_ + 1);
    events_->events[marks_].record(stream ? raw_cuda_stream(*stream) : events_->stream);
  }
  ++marks_;
}

std::vector<double> DeviceClock::seconds() {
  if (!events_) return host_;
  device_.compute_stream().synchronize();
  std::vector<double> times;
  for (size_t i = 0; i < marks_; ++i) {
    events_->events[i].synchronize();  // of whichever stream
    const double since = 1e-3 * events_->base.elapsed_time(events_->events[i]);
    times.push_back(events_->base_seconds + since);
  }
  return times;
}

#else

struct DeviceClock::Events {};

DeviceClock::DeviceClock(LogicalDevice& device, Clock::time_point origin, size_t most)
    : device_(device), origin_(origin) {
  host_.reserve(most);
}

void DeviceClock::mark(Stream*) {
  host_.push_back(std::chrono::duration<double>(Clock::now() - origin_).count());
  ++marks_;
}

std::vector<double> DeviceClock::seconds() { return host_; }

#endif

DeviceClock::~DeviceClock() = default;

}  // namespace tandem
