#include "tandem/trainer.h"

#include "device/registry.h"
#include "train/plan.h"
#include "train/replica.h"
#include "train/train_run.h"
#include "util/log.h"

namespace tandem {

TrainResult train(const Config& config, const TrainHooks& hooks, const TrainOptions& options) {
  return TrainRun(config, hooks, options).run();
}

std::string plan_training(const Config& config) {
  const TrainPlan plan = make_plan(config);
  announce_pipeline(plan);
  announce_model_place(plan);
  for (const std::string& name : plan.strategy.replicas) {
    announce_creation(plan, name);
    Replica replica(DeviceRegistry::get().find(name), plan.size,
                    static_cast<uint64_t>(config.training.seed), config.training.learning_rate);
  }
  return format_plan(plan, config);
}

}  // namespace tandem
