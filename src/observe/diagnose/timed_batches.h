// A BatchMaker that passes everything on and keeps the times of the host threads' tasks.
#pragma once

#include <mutex>

#include "data/feed/batch_maker.h"
#include "observe/diagnose/thread_time.h"

namespace tandem {

class TimedBatches final : public BatchMaker {
 public:
  explicit TimedBatches(BatchMaker& maker) : maker_(maker) {}

  struct Totals {
    int64_t batches = 0, planned_tasks = 0, tasks = 0;
    SpentTime spent;  // in tasks that are done
    // A batch's share, for the batches since `earlier`.
    SpentTime a_batch_since(const Totals& earlier) const;
  };
  Totals totals() const;

  std::unique_ptr<HostBatch> make_host_batch(bool pinned) override {
    return maker_.make_host_batch(pinned);
  }
  void plan(HostBatch& host, int64_t index) override;
  void run_task(HostBatch& host, int task) override;
  std::vector<int64_t> largest_fields() const override { return maker_.largest_fields(); }
  Batch prepare(const HostBatch& host) override { return maker_.prepare(host); }

 private:
  BatchMaker& maker_;
  mutable std::mutex mutex_;
  Totals totals_;
};

}  // namespace tandem
