// What the stages have in common with the plan, known before any data is.
#pragma once

#include "train/plan.h"

namespace tandem {

// Parameters and facts of what would be trained, without making it. Throws Error(config).
void describe_stage(const Config& config, TrainPlan& plan);

// Makes what the stage trains on the device of the open DeviceScope, and lets it go: a dry run that
// would not fit says so.
void create_model_only(const Config& config);

}  // namespace tandem
