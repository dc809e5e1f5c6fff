// What a run will do, worked out before it starts: who holds the model, who prepares, how much at a
// time.
#pragma once

#include <string>

#include "models/bytes/byte_gpt.h"
#include "tandem/config.h"
#include "tandem/devices.h"

namespace tandem {

struct TrainPlan {
  Strategy strategy;
  ByteGptSize size{};
  int64_t parameters = 0;
  int64_t batch_size = 0, accumulation = 1;
  size_t queue_capacity = 0;  // batches in the queue training reads
  int64_t tokens_a_step = 0;
};

// Throws Error(config) for what this version cannot do.
TrainPlan make_plan(const Config& config);

// `max(6, buffer/2)` on a data GPU of its own, the whole buffer otherwise (contract 001-3, 001-11).
size_t queue_capacity(int64_t buffer_size, StrategyKind kind);

std::string format_plan(const TrainPlan& plan, const Config& config);

// The contract's start-up lines about the pipeline and the model's place (001-9, 001-11).
void announce_pipeline(const TrainPlan& plan);
void announce_model_place(const TrainPlan& plan);
// 001-5, before the replica on `device` is created; said where there is more than one device to
// choose.
void announce_creation(const TrainPlan& plan, const std::string& device);

}  // namespace tandem
