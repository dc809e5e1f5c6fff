// The training that the settings describe, as the subject of a diagnosis: its own stage, batches,
// replicas and optimizer, but no run's folder. Nothing it learns is kept.
#pragma once

#include <memory>
#include <vector>

#include "device/communicator.h"
#include "observe/diagnose/figures.h"
#include "observe/diagnose/subject.h"
#include "train/faults.h"
#include "train/plan.h"
#include "train/replica.h"
#include "train/stage.h"

namespace tandem {

class TrainingSubject final : public Subject {
 public:
  // Needs configured devices and `data.train_data`. Throws what a training would.
  explicit TrainingSubject(const Config& config);
  ~TrainingSubject() override;

  Circumstances circumstances();

  BatchMaker& batches() override { return stage_->batches(); }
  LogicalDevice& data_device() override;
  std::vector<LogicalDevice*> models() override { return models_; }
  FeedOptions feeding() const override;
  int batches_a_step() const override { return static_cast<int>(plan_.accumulation); }
  void work_alone(int rank) override;
  void work_together() override;
  void step(int rank, const NextBatch& next) override;
  void gave_up(int rank) override;
  bool queues_work() override;
  int64_t unsettled(int rank) const override;
  int64_t parts() const override;
  bool turn_debugging(bool on) override;
  std::vector<std::string> files() override;
  double bytes_read_a_batch() override;

 private:
  std::unique_ptr<Replica> make_replica(size_t rank, Communicator* group);
  void look_at_files();

  const Config config_;
  const TrainPlan plan_;
  const std::optional<Fault> fault_;
  std::vector<LogicalDevice*> models_;
  std::unique_ptr<Stage> stage_;
  std::vector<std::unique_ptr<Communicator>> groups_;
  std::vector<std::unique_ptr<Replica>> replicas_;  // by rank; empty where another works alone
  std::vector<int64_t> steps_;                      // done, by rank
  bool debugging_;
  std::vector<std::string> files_;
  double clip_bytes_ = -1;  // mean; below 0: not looked at yet
};

// The settings with what a diagnosis needs and nobody gave: the stage that trains on such data
// (`bytes` reads a text, speech is first learned by `dvae`).
Config fit_for_diagnosis(Config config);

}  // namespace tandem
