#include "train/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/registry.h"
#include "train/rules/fused_step.h"
#include "train/stages/describe_stage.h"
#include "train/voice_parts.h"
#include "tandem/error.h"
#include "tandem/trainer.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string original_index(const std::string& device) {
  return std::to_string(DeviceRegistry::get().find(device).original_index());
}

std::vector<std::string> original_indices(const std::vector<std::string>& devices) {
  std::vector<std::string> out;
  for (const std::string& device : devices) out.push_back(original_index(device));
  return out;
}

}  // namespace

int64_t replica_count(const TrainingConfig& training) {
  return static_cast<int64_t>(setup_gpu_strategy(training.multi_gpu).replicas.size());
}

size_t queue_capacity(int64_t buffer_size, StrategyKind kind) {
  if (kind != StrategyKind::dual) return static_cast<size_t>(buffer_size);
  return static_cast<size_t>(std::max<int64_t>(6, buffer_size / 2));
}

double learning_rate_of(const Config& config) {
  if (config.training.learning_rate) return *config.training.learning_rate;
  const std::string& stage = config.training.stage;
  const bool goes_on =
      config.model.pretrained && trained_stages(*config.model.pretrained).contains(stage);
  // Coqui's rate to go on with a GPT; rates that new ones learn with.
  if (stage == "gpt") return goes_on && config.training.lora_rank == 0 ? 5e-6 : 3e-4;
  if (stage == "dvae") return goes_on ? 5e-5 : 3e-4;
  if (stage == "decoder") return goes_on ? 1e-4 : 2e-4;
  return 1e-3;
}

TrainPlan make_plan(const Config& config) {
  TrainPlan plan;
  plan.strategy = setup_gpu_strategy(config.training.multi_gpu);
  plan.batch_size = config.data.batch_size;
  plan.accumulation = config.training.gradient_accumulation_steps;
  plan.queue_capacity = queue_capacity(config.data.buffer_size, plan.strategy.kind);
  plan.learning_rate = learning_rate_of(config);
  describe_stage(config, plan);
  const auto replicas = static_cast<int64_t>(plan.strategy.replicas.size());
  if (plan.batch_size < replicas) {
    throw Error(ErrorKind::config,
                fmt::format("data.batch_size is {}, less than the {} replicas that share it",
                            plan.batch_size, replicas))
        .hint(fmt::format("use --batch-size {} or more", replicas));
  }
  return plan;
}

// Of a training in several stages each has its own.
std::string rate_words(const TrainPlan& plan, const Config& config) {
  if (config.training.stage != "all") return fmt::format("{:g}", plan.learning_rate);
  std::vector<std::string> rates;
  for (const std::string& stage : voice_stages()) {
    Config one = config;
    one.training.stage = stage;
    rates.push_back(fmt::format("{} {:g}", stage, learning_rate_of(one)));
  }
  return join(rates, ", ");
}

HeldBytes planned_bytes(const TrainPlan& plan, const TrainingConfig& training) {
  const auto trained = static_cast<uint64_t>(plan.parameters);
  HeldBytes parts = {{"weights", 4 * trained},
                     {"frozen weights", 4 * static_cast<uint64_t>(plan.frozen)},
                     {"gradients", 4 * trained - 2 * static_cast<uint64_t>(plan.half_gradients)},
                     {"moments", 8 * trained},
                     {"moving average", training.ema_decay > 0 ? 4 * trained : 0},
                     {"activations", plan.activation_bytes}};
  std::erase_if(parts, [](const auto& part) { return part.second == 0; });
  return parts;
}

PlanRows plan_rows(const TrainPlan& plan, const Config& config, const HeldBytes& held) {
  const auto replicas = static_cast<int64_t>(plan.strategy.replicas.size());
  PlanRows rows = {{"strategy", plan.strategy.describe()},
                   {"data prepared on", plan.strategy.data_device},
                   {"model held by", join(plan.strategy.replicas, ", ")}};
  rows.insert(rows.end(), plan.facts.begin(), plan.facts.end());
  rows.emplace_back("parameters",
                    fmt::format("{}{}", plan.parameters,
                                config.training.stage == "all" ? " of the GPT, the largest" : ""));
  const std::optional<double>& seconds = config.data.batch_seconds;
  const bool by_time = seconds && config.training.stage != "bytes";
  rows.emplace_back("batch", fmt::format("{} x {} accumulated{}",
                                         by_time ? fmt::format("clips of {:g} s together", *seconds)
                                                 : fmt::format("{}", plan.batch_size),
                                         plan.accumulation,
                                         plan.tokens_a_step > 0
                                             ? fmt::format(", {} tokens a step", plan.tokens_a_step)
                                             : ""));
  if (!by_time) rows.emplace_back("a replica takes", fmt::format("{}", plan.batch_size / replicas));
  rows.emplace_back(
      "queue", fmt::format("{} batches on {}", plan.queue_capacity, plan.strategy.data_device));
  HeldBytes parts = planned_bytes(plan, config.training);
  for (const auto& part : held) {
    const auto planned = std::ranges::find(parts, part.first, &HeldBytes::value_type::first);
    planned == parts.end() ? parts.push_back(part) : void(planned->second = part.second);
  }
  std::vector<std::string> memory;
  for (const auto& [name, bytes] : parts) memory.push_back(name + " " + format_bytes(bytes));
  rows.emplace_back("memory, each model", join(memory, ", "));
  if (config.training.recompute)
    rows.emplace_back("activations", config.training.stage == "gpt"
                                         ? "computed again in the backward pass"
                                         : "kept; training.recompute is for the gpt stage");
  const DeviceKind kind = DeviceRegistry::get().find(plan.strategy.replicas.front()).kind();
  std::string precision = config.training.precision;
  if (computes_in_float32(config.training, kind)) {
    const bool but_one = config.training.stage == "all" && precision != "tf32";
    precision += but_one ? ", which this device computes in float32 but for the DVAE"
                         : ", which this device computes in float32";
  }
  rows.emplace_back("precision", precision);
  rows.emplace_back("learning rate", rate_words(plan, config) + ", " + config.training.schedule);
  const std::string& stages = config.training.stage_steps;
  rows.emplace_back("steps", config.training.stage == "all" && !stages.empty() ? stages
                             : config.training.max_steps
                                 ? fmt::format("{}", *config.training.max_steps)
                                 : fmt::format("{} epochs", config.training.epochs));
  return rows;
}

std::string format_plan(const PlanRows& rows) {
  std::string text = "\nPlan\n";
  for (const auto& [name, value] : rows) text += fmt::format("  {:<20} {}\n", name, value);
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

std::vector<std::string> step_lines(const TrainingConfig& training, DeviceKind device) {
  if (device != DeviceKind::cuda) return {};
  if (!training.enable_graph_mode || training.enable_eager_debug)
    return {"⚠️  Graph mode DISABLED - GPU utilization will be lower"};
  // Kernels of the DVAE and of the decoder have no other form.
  const bool fuses =
      training.stage == "gpt" ? fuses_gpt_step(training, device) : training.stage != "bytes";
  std::vector<std::string> lines = {
      fmt::format("✅ Graph mode ENABLED {} kernel fusion", fuses ? "with" : "without")};
  if (training.enable_kernel_fusion && !fuses)
    lines.emplace_back("   (fused is the gpt stage in bf16, without LoRA)");
  if (!training.enable_kernel_fusion && fuses)
    lines.emplace_back("   (training.enable_kernel_fusion=false changes the gpt stage only)");
  return lines;
}

bool computes_in_float32(const TrainingConfig& training, DeviceKind device) {
  // The DVAE's convolutions know bfloat16 and float16 on the CPU too.
  return device != DeviceKind::cuda && training.precision != "fp32" &&
         (training.stage != "dvae" || training.precision == "tf32");
}

void announce_step(const TrainPlan& plan, const Config& config) {
  const LogicalDevice& device = DeviceRegistry::get().find(plan.strategy.replicas.front());
  if (computes_in_float32(config.training, device.kind()))
    log_warning("training.precision is {}; {} computes the {} stage in float32",
                config.training.precision, plan.strategy.replicas.front(), config.training.stage);
  const std::vector<std::string> lines = step_lines(config.training, device.kind());
  if (!lines.empty() && lines.front().starts_with("⚠️")) return complain(lines);
  for (const std::string& line : lines) say(line);
}

void announce_creation(const TrainPlan& plan, const std::string& device) {
  const StrategyKind kind = plan.strategy.kind;
  if (kind == StrategyKind::dual || kind == StrategyKind::mirrored)
    say("Creating model on device: " + device);
}

}  // namespace tandem
