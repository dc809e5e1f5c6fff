// The same work for rows [0, count) on several threads, while the calling thread looks on.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

// `look` is called on this thread every tenth of a second with the rows done; it stops the work by
// throwing. What a row or `look` throws is thrown here once every thread has ended.
inline void for_rows(int64_t count, int workers, const std::function<void(int64_t)>& work,
                     const std::function<void(int64_t)>& look) {
  std::atomic<int64_t> next = 0, done = 0;
  std::mutex mutex;
  std::condition_variable ended;
  std::exception_ptr failure;
  int running = workers;
  const auto fail = [&](std::exception_ptr error) {
    std::lock_guard lock(mutex);
    if (!failure) failure = std::move(error);
    next = count;
  };
  const auto run = [&] {
    try {
      for (int64_t row = next++; row < count; row = next++) {
        work(row);
        ++done;
      }
    } catch (...) {
      fail(std::current_exception());
    }
    std::lock_guard lock(mutex);
    --running;
    ended.notify_all();
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) threads.emplace_back(run);
    while (true) {
      std::unique_lock lock(mutex);
      const bool finished =
          ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; });
      lock.unlock();
      if (finished) break;
      try {
        look(done);
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
  look(done);
}

}  // namespace tandem
