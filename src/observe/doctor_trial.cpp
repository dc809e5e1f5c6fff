#include "observe/doctor_trial.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/logical_device.h"
#include "device/torch_errors.h"
#include "models/xtts/xtts_config.h"
#include "observe/train_bench.h"
#include "train/stages/describe_stage.h"
#include "util/text.h"

namespace tandem {
namespace {

// Less than this share of the eager step's speed is a loss, not noise.
constexpr double least_speed_up = 0.9;

StepFigures run_way(LogicalDevice& device, TrainBenchOptions options, bool graph, bool fusion) {
  options.graph = graph;
  options.fusion = fusion;
  StepFigures figures;
  try {
    const TrainBench bench = bench_training(device, options);
    figures.step_seconds = bench.step_seconds;
    figures.peak_bytes = bench.peak_bytes;
    figures.captures = bench.captures;
  } catch (const std::exception& error) {
    figures.failure = explain_with_torch(error).sentence;
  }
  return figures;
}

Check check_way(const std::string& name, const StepFigures& way, const TrialFigures& all,
                bool captures) {
  Check check{.name = name};
  if (captures && !all.on_gpu) {
    check.verdict = Verdict::skip;
    check.found = "needs a GPU: there is nothing to capture on " + all.device;
    return check;
  }
  if (!way.failure.empty()) {
    check.verdict = Verdict::fail;
    check.found = way.failure;
    check.advice = "a run would fail likewise: tandem doctor, then tandem devices";
    return check;
  }
  check.found = fmt::format("{:.2f} ms a step", 1e3 * way.step_seconds);
  if (&way != &all.eager && all.eager.failure.empty()) {
    const double speed_up = all.eager.step_seconds / way.step_seconds;
    check.found += fmt::format(", {:.2f} times the eager speed", speed_up);
    // Steps on a CPU vary more than fusion gives.
    if (all.on_gpu && speed_up < least_speed_up) {
      check.verdict = Verdict::fail;
      check.advice = "it should be faster: look for other processes and throttling (tandem doctor)";
    }
  }
  if (!captures) return check;
  check.found += fmt::format(", {} captures", way.captures);
  if (way.captures == 0 || way.captures > all.steps / 2) {
    check.verdict = Verdict::fail;
    check.advice = way.captures == 0 ? "nothing was captured" : "it captures again and again";
  }
  return check;
}

Check check_place(const TrialFigures& all) {
  const double bytes = std::max(
      {all.eager.peak_bytes, all.fused.peak_bytes, all.captured.peak_bytes, all.both.peak_bytes});
  Check check{
      .name = "placement",
      .found = fmt::format("{} of {}'s memory at the peak ({})",
                           format_bytes(static_cast<uint64_t>(bytes)), all.device, all.words)};
  if (!all.counted) {
    check.verdict = Verdict::skip;
    check.found = fmt::format("all work is done on {} ({})", all.device, all.words);
  } else if (bytes <= 0) {
    check.verdict = Verdict::fail;
    check.advice = "the work was done somewhere else: tandem devices";
  }
  return check;
}

}  // namespace

TrialFigures try_steps(LogicalDevice& device, const StepTrial& trial) {
  const XttsGptSize gpt = xtts_preset(trial.model_size).gpt;
  const bool on_gpu = device.kind() == DeviceKind::cuda;
  TrainBenchOptions options{.model_size = trial.model_size,
                            .rows = on_gpu ? 16 : 2,
                            .precision = trial.precision,
                            .steps = trial.steps};
  // A row is a third text and two thirds codes; 0.7 of its longest leaves room for the marks.
  options.places = std::min<int64_t>(options.places, 32 + 7 * gpt.max_audio_tokens / 5);
  TrialFigures all{.on_gpu = on_gpu,
                   .counted = device.kind() != DeviceKind::cpu,
                   .device = device.name(),
                   .steps = trial.steps};
  all.words = fmt::format("GPT of size {}, {} rows of {} places, {}", trial.model_size,
                          options.rows, options.places, trial.precision);
  all.eager = run_way(device, options, false, false);
  all.fused = run_way(device, options, false, true);
  if (!on_gpu) return all;
  all.captured = run_way(device, options, true, false);
  all.both = run_way(device, options, true, true);
  return all;
}

std::vector<Check> check_steps(const TrialFigures& figures) {
  return {check_way("eager step", figures.eager, figures, false),
          check_way("fused step", figures.fused, figures, false),
          check_way("captured step", figures.captured, figures, true),
          check_way("captured, fused", figures.both, figures, true), check_place(figures)};
}

CheckpointNeed checkpoint_need(const Config& config) {
  TrainPlan plan;
  plan.strategy.replicas = {"/CPU:0"};
  plan.batch_size = config.data.batch_size;
  describe_stage(config, plan);
  return {.parameters = static_cast<uint64_t>(plan.parameters),
          .keep = config.training.keep_checkpoints,
          .average = config.training.ema_decay > 0,
          .bytes_there = config.paths.checkpoint_dir.empty()
                             ? 0
                             : checkpoint_bytes_in(config.paths.checkpoint_dir)};
}

}  // namespace tandem
