// Training. `tandem train` is a thin front of this; a program may call it as well:
//
//   configure_devices({.simulate_gpus = 2, .data_gpu = "0", .model_gpu = "1"});
//   TrainResult result = train(config, {.on_step = [](const StepReport& r) { … }});
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tandem/config.h"
#include "tandem/devices.h"

namespace tandem {

struct StepReport {
  int64_t step = 0;  // steps done, this one included
  int64_t total_steps = 0;
  bool validation = false;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;  // over all replicas
  double wait_share = 0;         // of this step's time, spent waiting for data
};

struct TrainHooks {
  std::function<void(const std::string& folder, int64_t first_step, int64_t total_steps)> on_start;
  // These are called from a training thread, in step order.
  std::function<void(const StepReport&)> on_step;
  std::function<void(const std::string& checkpoint)> on_checkpoint;
};

struct TrainOptions {
  bool fresh = false;                // never resume
  std::string resolved_config_yaml;  // kept as config.yaml in the run's folder
};

struct TrainResult {
  std::string folder;
  int64_t first_step = 0;  // where it began: 0, or the step of the checkpoint it resumed
  int64_t last_step = 0;
  double first_loss = 0, last_loss = 0;
  std::optional<double> validation_loss;
  bool already_finished = false;
  // What each device did: tensor operations (when counted) and peak bytes.
  struct DeviceUse {
    uint64_t operations = 0, peak_bytes = 0;
    std::map<std::string, uint64_t> by_name;
  };
  std::map<std::string, DeviceUse> devices;
};

// Needs configured devices. Throws Error; Error(interrupted or terminated) after a saved
// checkpoint.
TrainResult train(const Config& config, const TrainHooks& hooks = {},
                  const TrainOptions& options = {});

// The plan of a run without its data: what would be created where. Creates the model for real on
// its devices, prints the start-up lines, and returns the table.
std::string plan_training(const Config& config);

}  // namespace tandem
