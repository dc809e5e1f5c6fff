// One copy of a stage's model with its optimizers, on one device. Driven by one thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/run_folder.h"
#include "device/communicator.h"
#include "train/gradient_reducer.h"
#include "train/learner.h"
#include "train/optimizer.h"
#include "train/pass_graphs.h"
#include "train/rules/loss_scale.h"

namespace tandem {

class LogicalDevice;
class StepObserver;
struct TrainingConfig;

// What a step needs from outside.
struct StepRequest {
  int64_t step = 1;
  double learning_rate = 0;
  bool poison = false;         // its loss becomes not-a-number, for tests
  bool out_of_memory = false;  // the device pretends to have none, for tests
  // Batches of this step, one after another.
  std::function<const Batch*(int64_t micro_batch)> batch;
  StepObserver* observer = nullptr;  // hears of the step's parts
};

class Replica {
 public:
  // Takes over a learner made on `device`, and makes its optimizers there. `group`: of all
  // replicas, or nullptr; must outlive it.
  Replica(LogicalDevice& device, std::unique_ptr<Learner> learner, const TrainingConfig& config,
          Communicator* group);
  ~Replica();

  // One optimizer step, queued on the device. Returns the learner's terms, then norm and "was it
  // taken" of each phase, [terms + 2 phases] float32 on the device; terms are of the whole batch.
  at::Tensor step(const StepRequest& request);

  // Sums and counts of the learner's measures over this replica's part of a validation batch.
  Measured validate(const Batch& batch);
  // Moving averages in place of the weights, and back; nothing where none are kept.
  void swap_average();
  // Whatever broke off meanwhile. False: they are neither the one nor the other.
  bool take_own_weights();

  at::Tensor checksum();
  Learner& learner() { return *learner_; }
  LogicalDevice& device() const { return device_; }
  int64_t parameters() const;
  // What it keeps on the device from step to step: weights, gradients, moments, …
  std::vector<std::pair<std::string, uint64_t>> bytes_by_part();
  int64_t captures() const { return graphs_.captures(); }
  int64_t unsettled() const { return graphs_.unsettled(); }
  int64_t reduced_early() const;
  // Parts a batch is worked on in, for want of memory; read from any thread.
  int64_t divisions() const { return divisions_; }
  void divide(int64_t parts) { divisions_ = parts; }
  // The last step is no number for want of memory: its gradients were on their way already.
  bool gave_up() const { return gave_up_; }
  void damage();  // one weight becomes another, for tests

  // Everything a checkpoint keeps, on the host once what is queued has run; the next one overwrites
  // it.
  struct Snapshot {
    std::vector<ParameterStore::Snapshot> phases;
    NamedTensors buffers, rest;
  };
  void copy_to(Snapshot& snapshot);
  Checkpoint checkpoint(const Snapshot& snapshot) const;  // without its state
  void load(const Checkpoint& checkpoint);

 private:
  struct PhaseParts {
    std::unique_ptr<ParameterStore> store;
    std::unique_ptr<Optimizer> optimizer;
    std::unique_ptr<GradientReducer> reducer;
    OptimizerInputs inputs;
    double learning_rate = 1;
  };
  at::Tensor add_gradients(size_t phase, const Batch& batch, bool last, const StepRequest& request);
  bool forget_pass(size_t phase, bool first_batch, bool last_batch);
  at::Tensor add_part(size_t phase, const Batch& batch, bool last, const StepRequest& request);
  at::Tensor update(size_t phase);
  at::Tensor finish(at::Tensor terms, std::vector<at::Tensor> outcomes);
  void set_inputs(const StepRequest& request);
  NamedTensors rest();

  LogicalDevice& device_;
  const TrainingConfig& config_;
  Communicator* group_;
  std::unique_ptr<Learner> learner_;
  std::vector<PhaseParts> phases_;
  StepValues values_;
  at::Tensor divisor_;
  std::optional<LossScale> scale_;  // fp16 only
  PassGraphs graphs_;
  PassGraphs update_graphs_;
  std::atomic<int64_t> divisions_{1};
  int64_t validation_divisions_ = 1;
  bool gave_up_ = false;
  enum class Weights { own, averaged, between } weights_ = Weights::own;
};

}  // namespace tandem
