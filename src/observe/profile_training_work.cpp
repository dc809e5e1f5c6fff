#include "observe/profile_training_work.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/torch_errors.h"
#include "observe/profile_recorder.h"
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
  std::vector<RecordedStep> steps;
};

class WorkSteps {
 public:
  explicit WorkSteps(const TrainingWork& work)
      : work_(work),
        replica_(work.device, work.stage.make_learner(work.device), work.training, nullptr) {}

  // `other`: with a batch the replica takes for one of a shape it has not met, whose passes
  // therefore run as they are.
  Traced take(int64_t steps, bool linked, bool other) {
    StepRecorder recorder(work_.device, origin_, steps);
    DoubleTrace trace(/*cuda=*/true, linked, origin_);
    Traced traced;
    for (int64_t i = 0; i < steps; ++i) {
      recorder.begin_step(next_);
      step(other, &recorder);
      recorder.end_step();
    }
    work_.device.compute_stream().synchronize();
    traced.steps = recorder.take();
    trace.stop(traced.operations, traced.kernels);
    return traced;
  }

  void step(bool other, StepRecorder* recorder = nullptr) {
    Batch batch;
    replica_.step({.step = next_++,
                   .learning_rate = work_.learning_rate,
                   .batch =
                       [&](int64_t) {
                         batch = work_.batch;
                         if (other) batch.whole_rows += ++others_;
                         return &batch;
                       },
                   .observer = recorder});
  }

 private:
  const TrainingWork& work_;
  const Clock::time_point origin_ = Clock::now();
  Replica replica_;
  int64_t next_ = 1, others_ = 0;
};

// Updates run as they are in the first step only; of the rest of that step nothing is taken, for
// what passes do for the first time is not what they do later.
void keep_work_of_updates(Traced& first) {
  std::vector<TimeSpan> updates;
  for (const RecordedStep& step : first.steps)
    for (const RecordedPart& part : step.parts)
      if (part.kind == &kind_of(StepPart::optimizer)) updates.push_back(part.host);
  for (TracedOperation& operation : first.operations.operations) {
    const bool updating = std::ranges::any_of(updates, [&](const TimeSpan& span) {
      return operation.start >= span.start && operation.end <= span.end;
    });
    if (!updating) operation.flops = operation.bytes = 0;
  }
}

}  // namespace

KernelRates rates_of_training(const TrainingWork& work, std::string& failure) {
  try {
    DeviceScope scope(work.device);
    WorkSteps steps(work);
    Traced first = steps.take(1, /*linked=*/true, /*other=*/false);
    keep_work_of_updates(first);
    for (int i = 0; i < 2; ++i) steps.step(/*other=*/false);  // captured, then replayed
    const Traced pass = steps.take(1, /*linked=*/true, /*other=*/true);
    const Traced captured = steps.take(captured_steps, /*linked=*/false, /*other=*/false);
    for (const Traced* one : std::initializer_list<const Traced*>{&first, &pass, &captured})
      if (!one->kernels.failure.empty()) failure = one->kernels.failure;
    return kernel_rates({{.operations = pass.operations, .kernels = pass.kernels},
                         {.operations = first.operations, .kernels = first.kernels}},
                        captured.kernels, captured_steps, work.device.info().cuda_index);
  } catch (const std::exception& error) {
    failure = explain_with_torch(error).sentence;
    return {};
  }
}

}  // namespace tandem
