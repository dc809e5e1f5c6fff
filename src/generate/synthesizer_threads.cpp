#include "generate/synthesizer_threads.h"

namespace tandem {

TextThreads::~TextThreads() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void TextThreads::run(std::function<void()> task) {
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (idle_ < tasks_.size()) threads_.emplace_back([this] { work(); });
  changed_.notify_one();
}

void TextThreads::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [&] { return closing_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds is let go before the thread counts as idle
    lock.lock();
  }
}

}  // namespace tandem
