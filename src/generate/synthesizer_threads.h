// Threads for texts that are being spoken: each mostly waits for its pieces. An idle one is used
// again; a new one begins when none is idle. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

class TextThreads {
 public:
  TextThreads() = default;
  ~TextThreads();  // waits for all tasks
  TextThreads(const TextThreads&) = delete;
  TextThreads& operator=(const TextThreads&) = delete;

  // The task must not throw.
  void run(std::function<void()> task);

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  size_t idle_ = 0;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
