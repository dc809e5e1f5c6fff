#include "tandem/trainer.h"

#include "device/device_scope.h"
#include "device/registry.h"
#include "train/plan.h"
#include "train/stages/describe_stage.h"
#include "train/train_run.h"
#include "util/log.h"

namespace tandem {

TrainResult train(const Config& config, const TrainHooks& hooks, const TrainOptions& options) {
  return TrainRun(config, hooks, options).run();
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
