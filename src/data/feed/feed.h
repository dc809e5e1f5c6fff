// The feed: from what to prepare to batches on each model device, all of it beside the training.
//
//   host threads -> data device: prepare -> ring there -> copy (side stream) -> ring of each model
//   -> next()
//
// Every arrow is bounded and counted. Where a model lives on the data device itself, its batches
// are read from the first ring and nothing is copied.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "data/feed/batch_ring.h"
#include "data/feed/host_loader.h"
#include "util/bounded_queue.h"

namespace tandem {

class LogicalDevice;
class Feed;
struct DataConfig;

struct FeedOptions {
  int64_t first_batch = 0, end_batch = 0;  // one past the last
  size_t capacity = 50;                    // prepared batches that wait on the data device
  int workers = 1;
  size_t prefetch_factor = 2;      // batches a worker may be ahead
  bool prefetch_to_device = true;  // false: prepared batches wait in host memory, and are copied
                                   // when they are asked for
  bool adaptive_depth = true;      // how far ahead follows the waits that were seen
  bool overlap = true;             // false: copies on the stream that trains
  bool pin_memory = true;
  bool force_staging = false;  // copy by way of the host even where a peer copy would do
  bool poison = false;         // fill buffers with NaN as soon as they are released
};

// What the settings of `data` ask for; which batches, the caller says.
FeedOptions feed_options(const DataConfig& config);

struct FeedCounters {
  QueueCounters loaded;    // host batches, read by the preparation
  QueueCounters prepared;  // batches on the data device, read by the copies
  QueueCounters moved;     // batches on the model device, read by the training
  uint64_t late = 0;       // batches that were still on their way when they were asked for
  size_t depth = 0;        // of the model's ring now
};

// A batch while it is used. Its buffers are given back when the lease ends, and not overwritten
// before what the model's compute stream holds at that moment has run.
class BatchLease {
 public:
  BatchLease(Feed& feed, int rank, RingSlot* slot, Batch batch)
      : feed_(&feed), rank_(rank), slot_(slot), batch_(std::move(batch)) {}
  BatchLease(BatchLease&& other) noexcept
      : feed_(std::exchange(other.feed_, nullptr)),
        rank_(other.rank_),
        slot_(other.slot_),
        batch_(std::move(other.batch_)) {}
  BatchLease& operator=(BatchLease&&) = delete;
  ~BatchLease();
  const Batch& operator*() const { return batch_; }
  const Batch* operator->() const { return &batch_; }

 private:
  Feed* feed_;
  int rank_;
  RingSlot* slot_;
  Batch batch_;
};

class Feed {
 public:
  Feed(BatchMaker& maker, LogicalDevice& data_device, std::vector<LogicalDevice*> models,
       const FeedOptions& options);
  ~Feed();  // stops all threads; no lease may be left

  // The next batch of `rank`, in order, on its device; nothing after the last. To be called by the
  // thread that trains there.
  std::optional<BatchLease> next(int rank);

  // Prepares no more: `next` gives what a rank has ready at most. A rank that leaves before the end
  // says so, or its full queue would keep the others waiting.
  void stop();

  // Waits until the prepared batches fill the buffer, at most `limit`; how many are ready.
  size_t wait_until_full(std::chrono::duration<double> limit);
  size_t capacity() const { return options_.capacity; }
  FeedCounters counters(int rank) const;

 private:
  friend class BatchLease;
  enum class Way { direct, ahead, on_demand };
  struct Lane {  // to one model
    LogicalDevice* device = nullptr;
    Way way = Way::direct;
    bool staged = false;
    std::unique_ptr<BoundedQueue<RingSlot*>> prepared, moved;
    std::unique_ptr<BatchRing> ring;
    std::thread thread;
    std::atomic<uint64_t> late{0};
  };

  void prepare_all();
  void prepare_one(RingSlot& slot, std::unique_ptr<HostBatch> host);
  void move_all(int rank);
  RingSlot* move_one(int rank, RingSlot* from, Stream& stream);
  Batch part(const Batch& whole, int rank) const;
  void give_back(int rank, RingSlot* slot);
  void release_prepared(RingSlot* slot, Event read);
  void fail(std::exception_ptr failure);
  int64_t largest(size_t field) const { return field < largest_.size() ? largest_[field] : 0; }
  Lane& lane(int rank) { return *lanes_[static_cast<size_t>(rank)]; }

  BatchMaker& maker_;
  LogicalDevice& data_device_;
  const FeedOptions options_;
  const std::vector<int64_t> largest_;  // numbers in each field of the largest batch
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<BatchRing> ring_;  // on the data device, or in host memory
  std::unique_ptr<HostLoader> loader_;
  std::thread preparation_;
};

}  // namespace tandem
