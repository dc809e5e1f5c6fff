// The host part of the feed: threads that run the tasks of the next batches, some batches ahead,
// and hand finished ones out in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "data/feed/batch_maker.h"
#include "device/stream.h"
#include "util/bounded_queue.h"

namespace tandem {

struct LoaderOptions {
  int64_t first_batch = 0, end_batch = 0;
  int workers = 16;
  size_t ahead = 2;       // batches in the making or waiting ...
  size_t most_ahead = 2;  // ... up to this many, one more each time the reader had to wait while
                          // the threads had no room to work ahead
  bool pinned = false;
};

class HostLoader {
 public:
  HostLoader(BatchMaker& maker, const LoaderOptions& options);
  ~HostLoader();

  // The next batch in order; nullptr after the last. Rethrows what a task threw.
  std::unique_ptr<HostBatch> take();
  // To be filled again once `read` is done.
  void give_back(std::unique_ptr<HostBatch> host, Event read);
  void stop();  // wakes everyone; take gives nullptr

  QueueCounters counters() const;
  size_t ahead() const;

 private:
  struct Making {
    std::unique_ptr<HostBatch> host;
    int begun = 0, done = 0;
    bool finished() const { return done == host->tasks; }
  };
  struct Spare {
    std::unique_ptr<HostBatch> host;
    Event read;
  };
  void work();
  Making* unbegun();
  bool can_begin() const { return next_ < options_.end_batch && held_ < ahead_; }
  bool nothing_left() const { return next_ >= options_.end_batch && making_.empty(); }
  void begin_batch(std::unique_lock<std::mutex>& lock);

  BatchMaker& maker_;
  const LoaderOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable work_, ready_;
  std::deque<std::unique_ptr<Making>> making_;  // in order; the first is the next to be taken
  std::vector<Spare> spare_;
  int64_t next_;
  size_t held_ = 0, ahead_;  // batches made and not given back; how many there may be
  int starved_ = 0;          // threads with nothing to do for lack of room
  bool stopping_ = false, planning_ = false;
  std::exception_ptr failure_;
  QueueCounters counters_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
