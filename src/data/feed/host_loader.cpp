#include "data/feed/host_loader.h"

#include "util/threads.h"

namespace tandem {

HostLoader::HostLoader(BatchMaker& maker, const LoaderOptions& options)
    : maker_(maker), options_(options), next_(options.first_batch), ahead_(options.ahead) {
  for (int i = 0; i < options.workers; ++i) {
    threads_.emplace_back([this] {
      enter_worker_thread("tandem-load");
      work();
    });
  }
}

HostLoader::~HostLoader() {
  stop();
  for (std::thread& thread : threads_) thread.join();
  for (Spare& spare : spare_) spare.read.synchronize();
}

HostLoader::Making* HostLoader::unbegun() {
  for (const auto& making : making_) {
    if (making->begun < making->host->tasks) return making.get();
  }
  return nullptr;
}

// Plans the next batch outside the lock where it waits for its buffers, one thread at a time so
// that batches stay in order.
void HostLoader::begin_batch(std::unique_lock<std::mutex>& lock) {
  planning_ = true;
  ++held_;
  const int64_t index = next_++;
  Spare spare;
  if (!spare_.empty()) {
    spare = std::move(spare_.back());
    spare_.pop_back();
  }
  lock.unlock();
  spare.read.synchronize();
  if (!spare.host) spare.host = maker_.make_host_batch(options_.pinned);
  maker_.plan(*spare.host, index);
  lock.lock();
  making_.push_back(std::make_unique<Making>(Making{.host = std::move(spare.host)}));
  planning_ = false;
  work_.notify_all();
  ready_.notify_all();
}

void HostLoader::work() {
  std::unique_lock lock(mutex_);
  try {
    while (!stopping_ && !failure_) {
      if (Making* making = unbegun()) {
        const int task = making->begun++;
        lock.unlock();
        maker_.run_task(*making->host, task);
        lock.lock();
        if (++making->done == making->host->tasks) ready_.notify_all();
      } else if (!planning_ && can_begin()) {
        begin_batch(lock);
      } else if (!planning_ && next_ >= options_.end_batch) {
        return;
      } else {
        const bool no_room = next_ < options_.end_batch && held_ >= ahead_;
        const auto start = Clock::now();
        starved_ += no_room;
        work_.wait(lock);
        starved_ -= no_room;
        if (no_room) counters_.put_wait += seconds_since(start);
      }
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (!failure_) failure_ = std::current_exception();
    work_.notify_all();
    ready_.notify_all();
  }
}

std::unique_ptr<HostBatch> HostLoader::take() {
  std::unique_lock lock(mutex_);
  const auto first_is_ready = [&] { return !making_.empty() && making_.front()->finished(); };
  const auto start = Clock::now();
  if (!first_is_ready()) {
    // Room to work ahead would have hidden this wait.
    if (starved_ > 0 && ahead_ < options_.most_ahead) {
      ++ahead_;
      work_.notify_all();
    }
    ready_.wait(lock, [&] {
      return stopping_ || failure_ || first_is_ready() || (nothing_left() && !planning_);
    });
    counters_.get_wait += seconds_since(start);
    counters_.empty_time += seconds_since(start);
  }
  if (failure_) std::rethrow_exception(failure_);
  if (stopping_ || making_.empty()) return nullptr;
  std::unique_ptr<HostBatch> host = std::move(making_.front()->host);
  making_.pop_front();
  ++counters_.items;
  return host;
}

void HostLoader::give_back(std::unique_ptr<HostBatch> host, Event read) {
  std::lock_guard lock(mutex_);
  spare_.insert(spare_.begin(), Spare{std::move(host), std::move(read)});  // the oldest is reused
  --held_;
  work_.notify_all();
}

void HostLoader::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  work_.notify_all();
  ready_.notify_all();
}

QueueCounters HostLoader::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

size_t HostLoader::ahead() const {
  std::lock_guard lock(mutex_);
  return ahead_;
}

}  // namespace tandem
