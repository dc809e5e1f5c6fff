// A queue of limited length between two stages, with the counters that tell which stage is slow:
// items passed, seconds producers waited for room, seconds consumers waited for items, seconds it
// stood empty.
//
// `close` lets consumers drain what is left, then get nothing. `fail` hands an exception to every
// caller.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>

#include "util/clock.h"

namespace tandem {

struct QueueCounters {
  uint64_t items = 0;
  double put_wait = 0;    // seconds
  double get_wait = 0;    // seconds
  double empty_time = 0;  // seconds
};

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity), empty_since_(Clock::now()) {}

  // False when the queue was closed meanwhile; the item is dropped.
  bool put(T item) {
    std::unique_lock lock(mutex_);
    const auto start = Clock::now();
    changed_.wait(lock, [&] { return closed_ || failure_ || items_.size() < capacity_; });
    counters_.put_wait += seconds_since(start);
    if (failure_) std::rethrow_exception(failure_);
    if (closed_) return false;
    if (items_.empty()) counters_.empty_time += seconds_since(empty_since_);
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  // Nothing when the queue is closed and drained.
  std::optional<T> get() {
    std::unique_lock lock(mutex_);
    const auto start = Clock::now();
    changed_.wait(lock, [&] { return closed_ || failure_ || !items_.empty(); });
    counters_.get_wait += seconds_since(start);
    if (failure_) std::rethrow_exception(failure_);
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    ++counters_.items;
    if (items_.empty()) empty_since_ = Clock::now();
    changed_.notify_all();
    return item;
  }

  // Waits until the queue is full or closed, at most `limit`; returns how many items are ready.
  size_t wait_until_full(std::chrono::duration<double> limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit,
                      [&] { return closed_ || failure_ || items_.size() >= capacity_; });
    return items_.size();
  }

  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  void fail(std::exception_ptr failure) {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }

  size_t capacity() const { return capacity_; }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }
  QueueCounters counters() const {
    std::lock_guard lock(mutex_);
    QueueCounters now = counters_;
    if (items_.empty()) now.empty_time += seconds_since(empty_since_);
    return now;
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool closed_ = false;
  std::exception_ptr failure_;
  QueueCounters counters_;
  Clock::time_point empty_since_;
};

}  // namespace tandem
