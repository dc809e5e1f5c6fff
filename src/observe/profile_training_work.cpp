#include "observe/profile_training_work.h"

#include <ATen/ATen.h>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/torch_errors.h"
#include "observe/profile_sections.h"
#include "tandem/config.h"
#include "train/learner.h"
#include "train/replica.h"
#include "train/stage.h"

namespace tandem {
namespace {

constexpr int64_t captured_steps = 3;

struct Traced {
  OperationRecord operations;
  KernelRecord kernels;
};

class WorkSteps {
 public:
  // `captured`: as in a run. Otherwise passes and updates run as they are in every step.
  WorkSteps(const TrainingWork& work, bool captured)
      : work_(work),
        training_(with_graphs(work.training, captured)),
        replica_(work.device, work.stage.make_learner(work.device), training_, nullptr) {}

  void take(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i)
      replica_.step({.step = next_++,
                     .learning_rate = work_.learning_rate,
                     .batch = [this](int64_t) { return &work_.batch; }});
    work_.device.compute_stream().synchronize();
  }

  Traced trace(int64_t steps, bool linked) {
    DoubleTrace trace(/*cuda=*/true, linked, Clock::now());
    take(steps);
    Traced traced;
    trace.stop(traced.operations, traced.kernels);
    return traced;
  }

 private:
  static TrainingConfig with_graphs(TrainingConfig training, bool captured) {
    training.enable_graph_mode = training.enable_graph_mode && captured;
    return training;
  }
  const TrainingWork& work_;
  const TrainingConfig training_;
  Replica replica_;
  int64_t next_ = 1;
};

// A replica of its own each, one after the other: both need the memory. What the first steps do
// once (libraries choose and load kernels, passes are captured) is not traced.
Traced traced(const TrainingWork& work, bool captured) {
  WorkSteps steps(work, captured);
  steps.take(captured ? 3 : 2);
  return steps.trace(captured ? captured_steps : 1, /*linked=*/!captured);
}

}  // namespace

KernelRates rates_of_training(const TrainingWork& work, std::string& failure) {
  try {
    DeviceScope scope(work.device);
    const Traced linked = traced(work, /*captured=*/false);
    const Traced captured = traced(work, /*captured=*/true);
    failure = linked.kernels.failure.empty() ? captured.kernels.failure : linked.kernels.failure;
    return kernel_rates({.operations = linked.operations, .kernels = linked.kernels},
                        captured.kernels, captured_steps, work.device.info().cuda_index);
  } catch (const std::exception& error) {
    failure = explain_with_torch(error).sentence;
    return {};
  }
}

}  // namespace tandem
