#include "train/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/registry.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

// Embeddings, then each block (two norms, attention 4 D^2, MLP 8 D^2, biases), then the last norm.
int64_t count_parameters(const ByteGptSize& size) {
  const int64_t d = size.width;
  return (256 + size.context) * d + size.layers * (12 * d * d + 13 * d) + 2 * d;
}

struct MemoryEstimate {
  uint64_t weights, gradients, optimizer, activations, queue;
};

MemoryEstimate estimate_memory(const TrainPlan& plan) {
  const auto parameters = static_cast<uint64_t>(plan.parameters);
  const auto replicas = static_cast<int64_t>(plan.strategy.replicas.size());
  const auto sequences = static_cast<uint64_t>((plan.batch_size + replicas - 1) / replicas);
  const auto places = sequences * static_cast<uint64_t>(plan.size.context);
  // Kept for the backward pass, per place and block: about 16 D numbers; logits and their softmax
  // at the end.
  const auto kept = static_cast<uint64_t>(plan.size.layers * 16 * plan.size.width + 2 * 256);
  return {.weights = 4 * parameters,
          .gradients = 4 * parameters,
          .optimizer = 8 * parameters,
          .activations = 4 * places * kept,
          .queue = plan.queue_capacity * places * 2 * 8};
}

std::string original_index(const std::string& device) {
  return std::to_string(DeviceRegistry::get().find(device).original_index());
}

std::vector<std::string> original_indices(const std::vector<std::string>& devices) {
  std::vector<std::string> out;
  for (const std::string& device : devices) out.push_back(original_index(device));
  return out;
}

}  // namespace

size_t queue_capacity(int64_t buffer_size, StrategyKind kind) {
  if (kind != StrategyKind::dual) return static_cast<size_t>(buffer_size);
  return static_cast<size_t>(std::max<int64_t>(6, buffer_size / 2));
}

TrainPlan make_plan(const Config& config) {
  if (config.training.stage != "bytes") {
    throw Error(ErrorKind::config,
                fmt::format("training.stage `{}` is not part of this version, which trains `bytes`",
                            config.training.stage))
        .hint("use --stage bytes: a small GPT on the bytes of any text");
  }
  TrainPlan plan;
  plan.strategy = setup_gpu_strategy(config.training.multi_gpu);
  plan.size = byte_gpt_size(config.model.size);
  plan.parameters = count_parameters(plan.size);
  plan.batch_size = config.data.batch_size;
  plan.accumulation = config.training.gradient_accumulation_steps;
  plan.queue_capacity = queue_capacity(config.data.buffer_size, plan.strategy.kind);
  plan.tokens_a_step = plan.batch_size * plan.accumulation * plan.size.context;
  const auto replicas = static_cast<int64_t>(plan.strategy.replicas.size());
  if (plan.batch_size < replicas) {
    throw Error(ErrorKind::config,
                fmt::format("data.batch_size is {}, less than the {} replicas that share it",
                            plan.batch_size, replicas))
        .hint(fmt::format("use --batch-size {} or more", replicas));
  }
  return plan;
}

std::string format_plan(const TrainPlan& plan, const Config& config) {
  const MemoryEstimate memory = estimate_memory(plan);
  const auto replicas = plan.strategy.replicas.size();
  std::string text = "\nPlan\n";
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<20} {}\n", name, value);
  };
  row("strategy", plan.strategy.describe());
  row("data prepared on", plan.strategy.data_device);
  row("model held by", join(plan.strategy.replicas, ", "));
  row("stage, size",
      fmt::format("{}, {}: {} layers, width {}, context {}", config.training.stage,
                  config.model.size, plan.size.layers, plan.size.width, plan.size.context));
  row("parameters", fmt::format("{}", plan.parameters));
  row("batch", fmt::format("{} sequences x {} accumulated, {} tokens a step", plan.batch_size,
                           plan.accumulation, plan.tokens_a_step));
  row("a replica takes",
      fmt::format("{} sequences", plan.batch_size / static_cast<int64_t>(replicas)));
  row("queue", fmt::format("{} batches on {}", plan.queue_capacity, plan.strategy.data_device));
  row("memory, each model",
      fmt::format("weights {}, gradients {}, optimizer {}, activations about {}",
                  format_bytes(memory.weights), format_bytes(memory.gradients),
                  format_bytes(memory.optimizer), format_bytes(memory.activations)));
  row("memory, queue", format_bytes(memory.queue));
  row("steps", config.training.max_steps ? fmt::format("{}", *config.training.max_steps)
                                         : fmt::format("{} epochs", config.training.epochs));
  return text;
}

void announce_pipeline(const TrainPlan& plan) {
  const Strategy& strategy = plan.strategy;
  switch (strategy.kind) {
    case StrategyKind::dual:
      say("🚀 Intelligent GPU Pipeline: Multi-GPU Mode");
      say("   - Data Processing GPU: " + original_index(strategy.data_device));
      say("   - Model Training GPU: " + join(original_indices(strategy.replicas), ", "));
      break;
    case StrategyKind::mirrored:
      say("🚀 Intelligent GPU Pipeline: Mirrored Mode");
      say("   - Replicas: " + join(strategy.replicas, ", "));
      break;
    case StrategyKind::one_device:
      say("🚀 Intelligent GPU Pipeline: Single-GPU Buffered Mode");
      say(fmt::format("   - Buffer Size: {}", plan.queue_capacity));
      say("   - Smart Prefetching: Enabled");
      break;
    case StrategyKind::cpu: say("No GPU is used: training on the CPU"); break;
  }
  say(fmt::format("   - Prefetching to {} with buffer_size={}", strategy.data_device,
                  plan.queue_capacity));
}

void announce_model_place(const TrainPlan& plan) {
  if (plan.strategy.kind != StrategyKind::dual) return;
  say("🎯 Multi-GPU Mode: Model will be placed on " + join(plan.strategy.replicas, ", "));
  for (const std::string& device : plan.strategy.replicas) {
    say(fmt::format("   (Original GPU {} is now mapped to {})", original_index(device),
                    device.substr(1)));
  }
}

void announce_creation(const TrainPlan& plan, const std::string& device) {
  const StrategyKind kind = plan.strategy.kind;
  if (kind == StrategyKind::dual || kind == StrategyKind::mirrored)
    say("Creating model on device: " + device);
}

}  // namespace tandem
