// What a run will do, worked out before it starts: who holds the model, who prepares, how much at a
// time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/config.h"
#include "tandem/devices.h"

namespace tandem {

enum class DeviceKind;

struct TrainPlan {
  Strategy strategy;
  int64_t parameters = 0;      // trained, of all phases
  int64_t frozen = 0;          // beside them on the model's device
  int64_t half_gradients = 0;  // of the trained ones, those whose gradients are 16 bits
  std::vector<std::pair<std::string, std::string>> facts;  // what the model is, in words
  int64_t batch_size = 0, accumulation = 1;
  size_t queue_capacity = 0;  // batches in the queue training reads
  double learning_rate = 0;
  int64_t tokens_a_step = 0;      // 0: known when the data is
  uint64_t activation_bytes = 0;  // of a replica, about
};

// Throws Error(config) for what cannot be done.
TrainPlan make_plan(const Config& config);

// The setting, or what fits the stage: 1e-3 for bytes, 5e-6 to go on with a GPT, and so on.
double learning_rate_of(const Config& config);

int64_t replica_count(const TrainingConfig& training);

// `max(6, buffer/2)` on a data GPU of its own, the whole buffer otherwise (contract 001-3, 001-11).
size_t queue_capacity(int64_t buffer_size, StrategyKind kind);

// Of what one model takes on its device: names with bytes.
using HeldBytes = std::vector<std::pair<std::string, uint64_t>>;
HeldBytes planned_bytes(const TrainPlan& plan, const TrainingConfig& training);

using PlanRows = std::vector<std::pair<std::string, std::string>>;
// `held`: parts as a model was seen to take them, in place of what was planned.
PlanRows plan_rows(const TrainPlan& plan, const Config& config, const HeldBytes& held = {});
std::string format_plan(const PlanRows& rows);

// The contract's start-up lines about the pipeline and the model's place (001-9, 001-11).
void announce_pipeline(const TrainPlan& plan);
void announce_model_place(const TrainPlan& plan);
// 001-5, before the replica on `device` is created; said where there is more than one device to
// choose.
void announce_creation(const TrainPlan& plan, const std::string& device);
// Whether a lower precision that was asked for changes nothing there.
bool computes_in_float32(const TrainingConfig& training, DeviceKind device);
// 003-1: how a step will run on such a device. Off GPUs there is nothing to capture, and nothing is
// said.
std::vector<std::string> step_lines(const TrainingConfig& training, DeviceKind device);
void announce_step(const TrainPlan& plan, const Config& config);

}  // namespace tandem
