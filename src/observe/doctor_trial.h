// `tandem doctor --test`: real optimizer steps of a small GPT, plain, fused and captured, on the
// device a run would train on; and how much room its checkpoints will take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/checks.h"
#include "observe/checks_storage.h"
#include "tandem/config.h"

namespace tandem {

class LogicalDevice;

struct StepTrial {
  std::string model_size = "tiny";
  std::string precision = "fp32";
  int64_t steps = 20;  // timed, each way
};

// What one way of running the step gave.
struct StepFigures {
  double step_seconds = 0, peak_bytes = 0;
  int64_t captures = 0;
  std::string failure;  // why it could not run; empty: it ran
};

struct TrialFigures {
  StepFigures eager, fused, captured, both;
  bool on_gpu = false;  // else the last two were not tried
  bool counted = true;  // the device counts its memory; the CPU does not
  std::string device;   // "/GPU:0"
  std::string words;    // what was run, for the reader
  int64_t steps = 20;
};

// Throws Error(config) for a size that does not exist; what a step throws is kept as its failure.
TrialFigures try_steps(LogicalDevice& device, const StepTrial& trial);
// Five checks: eager, fused, captured, captured and fused, and where the work was done.
std::vector<Check> check_steps(const TrialFigures& figures);

// From the stage, the model's size and training.keep_checkpoints. Throws Error(config), Error(io)
// where the model cannot be known.
CheckpointNeed checkpoint_need(const Config& config);

}  // namespace tandem
