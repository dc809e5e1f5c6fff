// An in-order queue of work on one device, and events that order queues among each other. The same
// calls on every kind of device:
//
//   CPU        work runs at once, in the caller
//   simulated  work runs later, in order, on the stream's own thread
//   CUDA       the function runs at once in the caller, with the CUDA stream current; what it
//   launches is queued
//
// So a function given to `run` must own (by value) what it uses and must not wait for its own
// stream. An exception from queued work stops the stream's later work and is thrown by the next run
// or synchronize.
#pragma once

#include <functional>
#include <memory>

namespace tandem {

class LogicalDevice;

class EventState {
 public:
  virtual ~EventState() = default;
  virtual bool done() const = 0;
  virtual void synchronize() = 0;  // blocks the calling thread
  // Both were recorded with their time, on one device, and are done.
  virtual double seconds_since(const EventState& earlier) const = 0;
};

// A point in a stream. Copyable; an empty event is always done.
class Event {
 public:
  Event() = default;
  explicit Event(std::shared_ptr<EventState> state) : state_(std::move(state)) {}
  bool done() const { return !state_ || state_->done(); }
  void synchronize() const {
    if (state_) state_->synchronize();
  }
  // On the device, from an earlier event to this one, both of record_time(). Waits for them.
  double seconds_since(const Event& earlier) const {
    if (!state_ || !earlier.state_) return 0;
    earlier.state_->synchronize();
    state_->synchronize();
    return state_->seconds_since(*earlier.state_);
  }
  EventState* state() const { return state_.get(); }

 private:
  std::shared_ptr<EventState> state_;
};

class Stream {
 public:
  virtual ~Stream() = default;
  virtual void run(std::function<void()> work) = 0;
  virtual Event record() = 0;                 // done when everything queued so far is done
  virtual Event record_time() = 0;            // the same, and says when that was
  virtual void wait(const Event& event) = 0;  // what is queued from now on starts after it
  virtual void synchronize() = 0;             // until the queue is empty
};

std::unique_ptr<Stream> make_inline_stream(LogicalDevice& device);
std::unique_ptr<Stream> make_thread_stream(LogicalDevice& device);
std::unique_ptr<Stream> make_cuda_stream(LogicalDevice& device);

}  // namespace tandem
