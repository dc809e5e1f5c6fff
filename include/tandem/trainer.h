// Training. `tandem train` is a thin front of this; a program may call it as well:
//
//   configure_devices({.simulate_gpus = 2, .data_gpu = "0", .model_gpu = "1"});
//   TrainResult result = train(config, {.on_step = [](const StepReport& r) { … }});
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/config.h"
#include "tandem/devices.h"

namespace tandem {

struct StepReport {
  int64_t step = 0;  // steps done, this one included
  int64_t total_steps = 0;
  bool validation = false;
  bool best = false;  // of a validation: its state is kept as the best so far
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;  // over all replicas
  double wait_share = 0;         // of this step's time, spent waiting for data
  // Everything else that was measured, by name: parts of the loss ("text", "mel"), or measures of a
  // validation ("accuracy"). The loss itself need not be repeated.
  std::vector<std::pair<std::string, double>> terms = {};
  double audio_seconds_per_second = 0;  // of sound trained on; 0: not known
  std::string skipped = {};             // why this step changed nothing; empty: it was taken
  uint64_t memory_used = 0;             // bytes, the fullest model device; 0: not known
  double gpu_utilisation = -1;          // 0 to 1, mean over the model devices; -1: not known
  int64_t captures = 0;                 // graphs captured so far
  int64_t unsettled = 0;                // passes so far that ran as they are, or were captured
};

// Something to look at or to listen to.
struct SampleReport {
  int64_t step = 0;
  std::string name;              // "validation/1", "sentence/2"
  std::vector<float> wave = {};  // one channel; empty: none
  int rate = 0;                  // samples a second
  std::vector<float> mel = {};   // [mels, frames], row after row, lowest band first; empty: none
  int64_t mels = 0, frames = 0;
  std::string text = {};  // shown beside it
};

// A queue of the feed since the run began.
struct QueueReading {
  std::string name;  // "loaded", "prepared", "moved"
  uint64_t items = 0;
  double put_wait = 0, get_wait = 0, empty_time = 0;  // seconds
};

struct TrainHooks {
  // Not where nothing is left to do. `first_step` of `total_steps` are done; all of them where only
  // a validation that was given up is made up for.
  std::function<void(const std::string& folder, int64_t first_step, int64_t total_steps)> on_start;
  // These are called from a training thread, in step order.
  std::function<void(const StepReport&)> on_step;
  std::function<void(const std::string& checkpoint)> on_checkpoint;
  std::function<void(const SampleReport&)> on_sample = {};
  // What happened beside the steps: kind "memory" (the micro-batch was halved), "replicas",
  // "schedule", … and a sentence.
  std::function<void(int64_t step, const std::string& kind, const std::string& text)> on_event = {};
  // Rows of the plan: ("parameters", "518 M"), ("tokens a step", "10112"). After on_start.
  std::function<void(const std::vector<std::pair<std::string, std::string>>&)> on_plan = {};
  // Once the feed stands: a function that reads its queues, on any thread. Before the feed goes:
  // an empty function; after that call returns the old one is not called again.
  std::function<void(std::function<std::vector<QueueReading>()>)> on_feed = {};
};

struct TrainOptions {
  bool fresh = false;                // never resume
  std::string resolved_config_yaml;  // kept as config.yaml in the run's folder
  std::string goes_on_with = {};     // how one that is stopped is resumed; empty: the same command
  std::string begins_with = {};      // how, where it had not begun; empty: as above
  // For sentences that tell a command: that it had --fresh, and what makes it that of this stage
  // alone where it stood for several (" --stage gpt …").
  bool asked_fresh = false;
  std::string alone_with = {};
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
// checkpoint. Behind an Error that says that a rank or the preparation hangs, their threads are
// still there: the process should end.
TrainResult train(const Config& config, const TrainHooks& hooks = {},
                  const TrainOptions& options = {});

const std::vector<std::string>& voice_stages();  // in their order: dvae, gpt, decoder

// The runs that `stage: all` stands for, one after another, each starting from what the one before
// it wrote; of any other stage the run itself. Their folders are in that of the whole.
// Throws Error(config).
// `own`: what a stage has instead, by its name; devices and places are those of the whole.
using StageConfigs = std::map<std::string, Config>;
std::vector<Config> runs_of(const Config& config, bool fresh, const StageConfigs& own = {});

// The plan of a run without its data: what would be created where. Creates the model for real on
// its devices, prints the start-up lines, and returns the table.
std::string plan_training(const Config& config);

}  // namespace tandem
