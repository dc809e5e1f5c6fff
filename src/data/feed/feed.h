// The feed: a thread that prepares batches on the data device and hands each replica its part
// through a bounded queue, so that preparing runs beside training.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "data/feed/byte_corpus.h"
#include "util/bounded_queue.h"

namespace tandem {

class LogicalDevice;

struct FeedOptions {
  uint64_t seed = 0;
  int64_t batch_size = 16;  // over all replicas
  int64_t first_batch = 0;
  int64_t end_batch = 0;  // one past the last
  int replicas = 1;
  size_t capacity = 50;  // batches
};

// Samples [first, first + count) of a batch that replica `rank` takes; the last takes the
// remainder.
struct Part {
  int64_t first, count;
};
Part part_of(int64_t batch_size, int replicas, int rank);

class Feed {
 public:
  Feed(ByteCorpus& corpus, LogicalDevice& data_device, const FeedOptions& options);
  ~Feed();  // stops the thread

  // The next batch of `rank`, on the data device, in order; nothing after the last.
  std::optional<Batch> next(int rank) { return queues_[static_cast<size_t>(rank)]->get(); }

  // Waits until every replica's queue is full, at most `limit`; returns how many batches are ready.
  size_t wait_until_full(std::chrono::duration<double> limit);
  size_t capacity() const { return options_.capacity; }
  QueueCounters counters(int rank) const { return queues_[static_cast<size_t>(rank)]->counters(); }

 private:
  void prepare_all();
  ByteCorpus& corpus_;
  LogicalDevice& device_;
  FeedOptions options_;
  std::vector<std::unique_ptr<BoundedQueue<Batch>>> queues_;
  std::thread thread_;
};

}  // namespace tandem
