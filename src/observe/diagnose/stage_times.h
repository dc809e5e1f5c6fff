// The stages of a feed, each by itself, and what the device does with small and large operations.
// Private to `measure`.
#pragma once

#include "observe/diagnose/figures.h"
#include "observe/diagnose/subject.h"

namespace tandem {

// Fills prepare, prepare_on_model, move, batch_bytes. No feed may run.
void time_stages(Subject& subject, Figures& figures);
// Fills launch_cost, operations, syncs and their names; runs a few steps of rank 0.
void count_launches(Subject& subject, const Subject::NextBatch& next, Figures& figures);
// Speed of large products in bfloat16 against float32 as it is set now; 1 off CUDA.
double low_precision_speed(LogicalDevice& device);

}  // namespace tandem
