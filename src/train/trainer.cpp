#include "tandem/trainer.h"

#include <memory>

#include "device/device_scope.h"
#include "device/registry.h"
#include "train/plan.h"
#include "train/stages/describe_stage.h"
#include "train/train_run.h"
#include "util/log.h"

namespace tandem {

namespace {

// With all it refers to: where a thread of it hangs for good, it stays.
struct WholeRun {
  WholeRun(const Config& c, const TrainHooks& h, const TrainOptions& o)
      : config(c), hooks(h), options(o), run(config, hooks, options) {}
  const Config config;
  const TrainHooks hooks;
  const TrainOptions options;
  TrainRun run;
};

}  // namespace

TrainResult train(const Config& config, const TrainHooks& hooks, const TrainOptions& options) {
  auto whole = std::make_unique<WholeRun>(config, hooks, options);
  try {
    return whole->run.run();
  } catch (...) {
    if (whole->run.left_behind()) whole.release();
    throw;
  }
}

std::string plan_training(const Config& config) {
  check_stage_steps(config.training);
  const TrainPlan plan = make_plan(config);
  announce_pipeline(plan);
  announce_model_place(plan);
  for (const std::string& name : plan.strategy.replicas) {
    announce_creation(plan, name);
    DeviceScope scope(DeviceRegistry::get().find(name));
    create_model_only(config);
  }
  return format_plan(plan_rows(plan, config));
}

}  // namespace tandem
