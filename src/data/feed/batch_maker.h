// How batches are made, in two parts. The host part is cut into tasks that any of the feed's
// threads may run, at the same time and in any order. The device part turns what they left into
// tensors on the data device.
#pragma once

#include <memory>

#include "data/feed/batch.h"

namespace tandem {

// What the host part of one batch fills; made once, used again and again.
struct HostBatch {
  virtual ~HostBatch() = default;
  int64_t index = 0;
  int tasks = 0;
};

class BatchMaker {
 public:
  virtual ~BatchMaker() = default;

  // `pinned`: its buffers are page-locked, so that copies to a GPU need not wait.
  virtual std::unique_ptr<HostBatch> make_host_batch(bool pinned) = 0;
  // Sets index and tasks. One thread at a time; quick.
  virtual void plan(HostBatch& host, int64_t index) = 0;
  virtual void run_task(HostBatch& host, int task) = 0;

  // Numbers in each field of the largest batch there will be, so that buffers are taken once;
  // empty: not known, buffers grow.
  virtual std::vector<int64_t> largest_fields() const { return {}; }

  // Under the data device's scope, its preparation stream current. Gives the whole batch, rows of
  // all replicas; what it queued may still be running, and reads `host` until it is done.
  virtual Batch prepare(const HostBatch& host) = 0;
};

}  // namespace tandem
