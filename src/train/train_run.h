// One run of training: the feed, one thread a replica, validation, checkpoints, stopping.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/run_folder.h"
#include "data/feed/feed.h"
#include "device/communicator.h"
#include "tandem/trainer.h"
#include "train/faults.h"
#include "train/loss_reader.h"
#include "train/memory_watch.h"
#include "train/plan.h"
#include "train/replica.h"
#include "util/signals.h"

namespace tandem {

class TrainRun {
 public:
  TrainRun(const Config& config, const TrainHooks& hooks, const TrainOptions& options);
  TrainResult run();

 private:
  void open_folder();
  void create_replicas();
  void start_feed();
  void run_threads();
  void throw_root_cause() const;

  // The life of one replica; everything below runs on its thread.
  void work(int rank);
  at::Tensor accumulate(int rank, double& waited);
  void report_step(int64_t step, double loss, double norm, double seconds, double waited);
  void validate(int rank, int64_t step);
  void check_replicas(int rank, int64_t step);
  void save(int64_t step, LossReader& reader);
  Communicator* group(int rank) const {
    return groups_.empty() ? nullptr : groups_[static_cast<size_t>(rank)].get();
  }
  int replica_count() const { return static_cast<int>(replicas_.size()); }
  bool due(int64_t every, int64_t step) const { return every > 0 && step % every == 0; }

  const Config& config_;
  const TrainHooks& hooks_;
  const TrainOptions& options_;
  const TrainPlan plan_;
  const std::optional<Fault> fault_;
  std::unique_ptr<ByteCorpus> corpus_;
  RunFolder folder_{""};
  RunState state_;
  int64_t total_steps_ = 0;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<Communicator>> groups_;
  std::unique_ptr<MemoryWatch> memory_;
  std::unique_ptr<ByteBatches> batches_;
  std::unique_ptr<Feed> feed_;
  std::vector<std::exception_ptr> failures_;
  // Rank 0 writes it before it joins the step's all-reduce, the others read it after: all stop
  // together.
  std::atomic<int64_t> stop_after_{INT64_MAX};
  bool best_at_last_validation_ = false;
  TrainResult result_;
};

}  // namespace tandem
