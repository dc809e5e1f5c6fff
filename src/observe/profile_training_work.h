// How much work the kernels of a training step are: two replicas, one after the other and each
// alone on its device, take a few steps on one batch, the first as they are and the second captured
// (profile_attribution.h).
#pragma once

#include <string>

#include "data/feed/batch.h"
#include "observe/profile_attribution.h"

namespace tandem {

class LogicalDevice;
class Stage;
struct TrainingConfig;

struct TrainingWork {
  LogicalDevice& device;
  Stage& stage;
  const TrainingConfig& training;
  double learning_rate = 0;
  const Batch& batch;  // on the device
};

// Nothing where it cannot be told; `failure` says why then.
KernelRates rates_of_training(const TrainingWork& work, std::string& failure);

}  // namespace tandem
