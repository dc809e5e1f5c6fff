// One run of training: the feed, one thread a replica, validation, samples, checkpoints, stopping.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "checkpoint/run_folder.h"
#include "data/feed/feed.h"
#include "device/communicator.h"
#include "tandem/trainer.h"
#include "train/checkpoint_writer.h"
#include "train/faults.h"
#include "train/loss_reader.h"
#include "train/memory_watch.h"
#include "train/nan_watch.h"
#include "train/plan.h"
#include "train/replica.h"
#include "train/rules/early_stop.h"
#include "train/rules/schedule.h"
#include "train/rules/step_guard.h"
#include "train/stage.h"
#include "util/clock.h"
#include "util/folder_lock.h"
#include "util/signals.h"

namespace tandem {

// What must be the same for a checkpoint to be continued, in words.
std::string run_fingerprint(const Config& config);

// Throws Error(config) where a training in all stages does not have a number of steps for each.
void check_stage_steps(const TrainingConfig& training);

// Before a corpus is prepared for it: throws Error(config) where the folder holds a run with other
// settings, Error(io) where it cannot be made or there is nothing to validate on.
void check_run_folder(const RunChoice& choice, const Config& config);

class TrainRun {
 public:
  TrainRun(const Config& config, const TrainHooks& hooks, const TrainOptions& options);
  TrainResult run();
  // A thread hangs that uses this object: it must not be destroyed.
  bool left_behind() const { return left_behind_; }

 private:
  void open_folder(const RunChoice& choice, const std::string& fingerprint);
  void write_settings() const;
  void create_replicas();
  void show_plan();
  void start_feed();
  void run_threads();
  void wait_for_threads(std::vector<std::thread>& threads);
  void tell_stalls();
  void drop_feeds();
  void finish();
  // `hint`: empty where the run goes on as its options say.
  void throw_if_stopped(const std::string& when, const std::string& hint = "") const;
  void write_model();
  bool is_at_its_end() const;
  double seconds() const;  // this run has taken, with those before it was resumed
  void throw_root_cause() const;
  std::vector<LogicalDevice*> model_devices() const;

  // The life of one replica; everything below runs on its thread.
  struct Worker;
  void work(int rank);
  bool take_step(Worker& worker, int64_t step);
  void decide_stop(int64_t step);
  void note_step(Worker& worker, int64_t step, const std::vector<double>& values, double seconds,
                 double waited);
  // What is due behind `step`: validation, samples, and a checkpoint, with `saves` in any case.
  // False: the run ends here. All ranks get the same.
  bool check(Worker& worker, int64_t step, bool last, bool saves);
  // False: it was given up, as the run was asked to stop.
  bool validate(Worker& worker, int64_t step);
  void make_samples(Worker& worker, int64_t step);
  // Throws what the first of all ranks found.
  void check_numbers(Worker& worker, int64_t step, const std::optional<NanWatch::Found>& found);
  void check_replicas(int rank, int64_t step);
  void save(Worker& worker, int64_t step);
  void keep_step(Worker& worker, int64_t step, const RunState& before);
  void folder_must_be_there() const;
  void write_dump(Worker& worker, int64_t step);
  std::vector<int64_t> divisions() const;  // by rank; empty: nobody's batches are cut
  // The ranks other than 0 wait until it has done `work`.
  void alone(int rank, const std::function<void()>& work);
  Communicator* group(int rank) const {
    return groups_.empty() ? nullptr : groups_[static_cast<size_t>(rank)].get();
  }
  Replica& replica(int rank) const { return *replicas_[static_cast<size_t>(rank)]; }
  int replica_count() const { return static_cast<int>(replicas_.size()); }
  bool due(int64_t every, int64_t step) const { return every > 0 && step % every == 0; }

  const Config& config_;
  const TrainHooks& hooks_;
  const TrainOptions& options_;
  const TrainPlan plan_;
  const std::optional<Fault> fault_;
  RunFolder folder_{""};
  std::optional<FolderLock> lock_;  // on it
  std::unique_ptr<Stage> stage_;
  std::vector<std::pair<std::string, std::string>> fingerprints_;  // files of the run's folder
  RunState state_;
  int64_t total_steps_ = 0;
  ScheduleOptions schedule_;
  std::vector<std::unique_ptr<Communicator>> groups_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::unique_ptr<MemoryWatch> memory_;
  std::unique_ptr<BatchMaker> faulty_batches_;  // of TANDEM_FAULT
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<Feed> validation_feed_;  // while a validation runs
  CheckpointWriter writer_;
  std::vector<int64_t> told_divisions_;  // of which an event was made
  // Below alone_mutex_: what each rank ended with, how many ended, and when the first failed.
  std::vector<std::exception_ptr> failures_;
  size_t ended_ = 0;
  std::optional<Clock::time_point> failed_;
  bool left_behind_ = false;
  // By rank: since when it waits for a batch, in seconds of this run; 0: it does not.
  std::vector<std::atomic<double>> waits_since_;
  bool stall_told_ = false;
  // Rank 0 writes it before it joins the step's all-reduce, the others read it after: all stop
  // together.
  std::atomic<int64_t> stop_after_{INT64_MAX};
  std::atomic<bool> time_is_up_{false};  // written and read as stop_after_ is
  Clock::time_point started_ = Clock::now();
  double seconds_before_ = 0;  // of the runs this one continues
  std::atomic<bool> rank_failed_{false};
  mutable std::mutex alone_mutex_;
  std::condition_variable alone_changed_;
  int64_t alone_done_ = 0;
  bool alone_failed_ = false;
  std::vector<int64_t> alone_seen_;  // by rank
  std::mutex nan_mutex_;
  int64_t nan_step_ = 0;  // the step the next two are of
  bool nan_left_out_ = false;
  std::optional<NanWatch::Found> first_nan_;
  TrainResult result_;
};

}  // namespace tandem
