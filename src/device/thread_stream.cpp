// Streams of the CPU (run at once) and of simulated devices (an in-order queue on a thread).
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/stream.h"

namespace tandem {
namespace {

// Of streams that run on this machine's own clock.
class Moment : public EventState {
 public:
  bool done() const override { return true; }
  void synchronize() override {}
  double seconds_since(const EventState& earlier) const override {
    const std::chrono::duration<double> passed = time_ - dynamic_cast<const Moment&>(earlier).time_;
    return passed.count();
  }

 protected:
  std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
};

class InlineStream final : public Stream {
 public:
  explicit InlineStream(LogicalDevice& device) : device_(device) {}
  void run(std::function<void()> work) override {
    DeviceScope scope(device_);
    work();
  }
  Event record() override { return Event(); }
  Event record_time() override { return Event(std::make_shared<Moment>()); }
  void wait(const Event& event) override { event.synchronize(); }
  void synchronize() override {}

 private:
  LogicalDevice& device_;
};

class Flag final : public Moment {
 public:
  bool done() const override {
    std::lock_guard lock(mutex_);
    return set_;
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return set_; });
  }
  void set() {
    std::lock_guard lock(mutex_);
    time_ = std::chrono::steady_clock::now();
    set_ = true;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

class ThreadStream final : public Stream {
 public:
  explicit ThreadStream(LogicalDevice& device) : device_(device), thread_([this] { serve(); }) {}
  ~ThreadStream() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void run(std::function<void()> work) override {
    rethrow_failure();
    push([this, work = std::move(work)] { work_slowly(work); });
  }
  Event record() override {
    auto flag = std::make_shared<Flag>();
    // Set even after a failure, so that nobody waits for ever on work that was dropped.
    push([flag] { flag->set(); }, /*always=*/true);
    return Event(flag);
  }
  Event record_time() override { return record(); }
  void wait(const Event& event) override {
    push([event] { event.synchronize(); }, /*always=*/true);
  }
  void synchronize() override {
    record().synchronize();
    rethrow_failure();
  }

 private:
  struct Task {
    std::function<void()> work;
    bool always;
  };

  void push(std::function<void()> work, bool always = false) {
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back({std::move(work), always});
    }
    changed_.notify_all();
  }

  void serve() {
    DeviceScope scope(device_);
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closing_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      const bool failed = failure_ != nullptr;
      lock.unlock();
      if (failed && !task.always) continue;
      try {
        task.work();
      } catch (...) {
        lock.lock();
        failure_ = std::current_exception();
      }
    }
  }

  void work_slowly(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const double extra = device_.info().slowness - 1.0;
    if (extra <= 0) return;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::this_thread::sleep_for(took * extra);
  }

  void rethrow_failure() {
    std::exception_ptr failure;
    {
      std::lock_guard lock(mutex_);
      std::swap(failure, failure_);
    }
    if (failure) std::rethrow_exception(failure);
  }

  LogicalDevice& device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_;  // last: it starts when everything above exists
};

}  // namespace

std::unique_ptr<Stream> make_inline_stream(LogicalDevice& device) {
  return std::make_unique<InlineStream>(device);
}
std::unique_ptr<Stream> make_thread_stream(LogicalDevice& device) {
  return std::make_unique<ThreadStream>(device);
}

}  // namespace tandem
