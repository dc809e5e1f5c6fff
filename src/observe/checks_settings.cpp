#include "observe/checks_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/schema.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr int64_t fewest_workers = 8, usual_workers = 16;
constexpr int64_t shortest_queue = 8, usual_queue = 16;

SettingCheck passes(const std::string& name, const std::string& found) {
  return {.check = {.name = name, .found = found}, .fix = {}};
}

SettingCheck warns(const std::string& name, const std::string& found, const std::string& advice,
                   std::optional<SettingFix> fix = {}) {
  return {.check = {.verdict = Verdict::warn, .name = name, .found = found, .advice = advice},
          .fix = std::move(fix)};
}

// A switch that should be on, and what its absence costs.
SettingCheck check_switch(const std::string& name, const std::string& key, bool on,
                          const std::string& cost) {
  if (on) return passes(name, fmt::format("`{}` is true", key));
  return warns(name, fmt::format("`{}` is false: {}", key, cost), fmt::format("set {}: true", key),
               SettingFix{key, true});
}

SettingCheck check_at_least(const std::string& name, const std::string& key, int64_t value,
                            int64_t least, int64_t better, const std::string& cost) {
  if (value >= least) return passes(name, fmt::format("`{}` is {}", key, value));
  return warns(name, fmt::format("`{}` is {}, under {}: {}", key, value, least, cost),
               fmt::format("set {}: {}", key, better), SettingFix{key, better});
}

// Collects what does not go together.
class Contradictions {
 public:
  Contradictions(const Resolved& settings, const SettingsMachine& machine)
      : config_(settings.config), sources_(settings.sources), machine_(machine) {}

  std::vector<SettingCheck> all() && {
    devices();
    memory();
    copies();
    steps();
    stages();
    if (found_.empty()) found_.push_back(passes("settings", "none contradicts another"));
    return std::move(found_);
  }

 private:
  // Said by somebody, not a default.
  bool given(const std::string& key) const {
    const auto source = sources_.find(key);
    return source != sources_.end() && source->second.layer != Source::Layer::standard;
  }
  void warn(const std::string& found, const std::string& advice,
            std::optional<SettingFix> fix = {}) {
    found_.push_back(warns("settings", found, advice, std::move(fix)));
  }
  void fail(const std::string& found, const std::string& advice) {
    warn(found, advice);
    found_.back().check.verdict = Verdict::fail;
  }

  void devices() {
    const auto& data = config_.data.data_gpu;
    const auto& model = config_.data.model_gpu;
    if (data.has_value() != model.has_value()) {
      const char* there = data ? "data_gpu" : "model_gpu";
      const char* missing = data ? "model_gpu" : "data_gpu";
      fail(fmt::format("`data.{}` is given and `data.{}` is not", there, missing),
           fmt::format("give both, or none for one GPU: data.{}: N", missing));
    }
    if (data && model && *data == *model)
      fail(fmt::format("`data.data_gpu` and `data.model_gpu` are both {}", *data),
           "they must be different; one card is parted with --split-gpu 2");
    const auto& visible = config_.training.visible_gpus;
    if (config_.training.multi_gpu && visible && visible->find(',') == std::string::npos)
      warn(fmt::format("`training.multi_gpu` is true, but `training.visible_gpus` leaves one GPU, "
                       "{}",
                       *visible),
           "name more GPUs, or set training.multi_gpu: false");
    const auto wanted = static_cast<int64_t>(machine_.gpus.size());
    if (config_.training.multi_gpu && !visible && wanted > config_.data.batch_size)
      fail(fmt::format("`data.batch_size` is {}, less than the {} GPUs that would share it",
                       config_.data.batch_size, wanted),
           fmt::format("set data.batch_size: {} or more", wanted));
  }

  void memory() {
    const bool limits = config_.training.data_gpu_memory || config_.training.model_gpu_memory;
    const bool isolation = config_.training.enable_memory_isolation;
    if (limits && !isolation)
      warn(
          "memory limits are given, but `training.enable_memory_isolation` is false: they do "
          "nothing",
          "set training.enable_memory_isolation: true, or leave the limits out",
          SettingFix{"training.enable_memory_isolation", true});
    if (isolation && !limits)
      warn("`training.enable_memory_isolation` is true, but no limit is given",
           "give training.data_gpu_memory and training.model_gpu_memory (MB)");
    const int64_t sum = config_.training.data_gpu_memory.value_or(0) +
                        config_.training.model_gpu_memory.value_or(0);
    for (const GpuInfo& gpu : machine_.gpus) {
      const auto has = static_cast<int64_t>(gpu.memory_total >> 20);
      const int64_t largest = std::max(config_.training.data_gpu_memory.value_or(0),
                                       config_.training.model_gpu_memory.value_or(0));
      if (sum == 0 || largest <= has || has == 0) continue;
      warn(fmt::format("a memory limit of {} MB is more than the {} MB GPU {} has", largest, has,
                       gpu.index),
           "lower it below the card's memory");
      break;
    }
  }

  void copies() {
    const DataConfig& data = config_.data;
    if (data.optimize_cpu_gpu_overlap && !data.pin_memory)
      warn(
          "`data.pin_memory` is false: copies cannot run beside the computation, whatever "
          "`data.optimize_cpu_gpu_overlap` says",
          "set data.pin_memory: true", SettingFix{"data.pin_memory", true});
    if (data.enhanced_gpu_prefetch && !data.prefetch_to_gpu && given("data.enhanced_gpu_prefetch"))
      warn("`data.enhanced_gpu_prefetch` has no effect while `data.prefetch_to_gpu` is false",
           "set data.prefetch_to_gpu: true", SettingFix{"data.prefetch_to_gpu", true});
    if (data.warn_bad_share > data.max_bad_share)
      warn(fmt::format("`data.warn_bad_share` is {}, above `data.max_bad_share`, {}: the run stops "
                       "before it warns",
                       data.warn_bad_share, data.max_bad_share),
           "set the first below the second");
  }

  void steps() {
    const TrainingConfig& training = config_.training;
    const bool graph = training.enable_graph_mode && given("training.enable_graph_mode");
    const bool fusion = training.enable_kernel_fusion && given("training.enable_kernel_fusion");
    if (training.enable_eager_debug && (graph || fusion))
      warn("`training.enable_eager_debug` turns off the graph mode and fusion that are asked for",
           "set training.enable_eager_debug: false unless you look for a NaN",
           SettingFix{"training.enable_eager_debug", false});
    if (training.max_steps && training.warmup_steps >= *training.max_steps)
      warn(fmt::format("`training.warmup_steps` is {} of {} steps: the learning rate never gets "
                       "where it should",
                       training.warmup_steps, *training.max_steps),
           fmt::format("set training.warmup_steps: {}", *training.max_steps / 20),
           SettingFix{"training.warmup_steps", *training.max_steps / 20});
    for (const GpuInfo& gpu : machine_.gpus) {
      const auto parts = split(gpu.compute_capability, '.');
      const auto major = parse_int(parts[0]);
      if (training.precision != "bf16" || !major || *major >= 8) continue;
      warn(fmt::format("`training.precision` is bf16, which GPU {} (compute capability {}) only "
                       "imitates",
                       gpu.index, gpu.compute_capability),
           "set training.precision: fp16");
      break;
    }
  }

  void stages() {
    const TrainingConfig& training = config_.training;
    if (training.lora_rank > 0 && training.stage != "gpt" && training.stage != "all")
      warn(fmt::format("`training.lora_rank` is {}, which the stage `{}` does not use",
                       training.lora_rank, training.stage),
           "it belongs to the stage `gpt`");
    if (!training.stage_steps.empty() && training.stage != "all")
      warn(fmt::format("`training.stage_steps` is given, which the stage `{}` does not use",
                       training.stage),
           "it belongs to the stage `all`; here training.max_steps counts");
    if (training.early_stop_patience > 0 && !config_.data.val_data &&
        config_.data.validation_share == 0)
      warn("`training.early_stop_patience` waits for validations, and there is no validation data",
           "give data.val_data, or a data.validation_share above 0");
  }

  const Config& config_;
  const std::map<std::string, Source>& sources_;
  const SettingsMachine& machine_;
  std::vector<SettingCheck> found_;
};

}  // namespace

std::vector<SettingCheck> check_speed_settings(const Config& config,
                                               const SettingsMachine& machine) {
  const TrainingConfig& training = config.training;
  const DataConfig& data = config.data;
  const int64_t workers = std::clamp<int64_t>(machine.cores, fewest_workers, usual_workers);
  std::vector<SettingCheck> checks;
  checks.push_back(check_switch("graph mode", "training.enable_graph_mode",
                                training.enable_graph_mode, "every kernel is launched by itself"));
  checks.push_back(check_switch("kernel fusion", "training.enable_kernel_fusion",
                                training.enable_kernel_fusion,
                                "more kernels, more memory traffic"));
  if (training.enable_eager_debug)
    checks.push_back(warns("eager debug",
                           "`training.enable_eager_debug` is true: no graph, no fusion, every "
                           "tensor checked",
                           "set training.enable_eager_debug: false",
                           SettingFix{"training.enable_eager_debug", false}));
  checks.push_back(check_switch("native loading", "data.use_native_loading",
                                data.use_native_loading, "the general decoder reads every file"));
  checks.push_back(check_switch("prefetch", "data.prefetch_to_gpu", data.prefetch_to_gpu,
                                "each batch is copied when the step already waits for it"));
  checks.push_back(check_switch("overlap", "data.optimize_cpu_gpu_overlap",
                                data.optimize_cpu_gpu_overlap,
                                "copies and computation take turns"));
  checks.push_back(check_at_least("workers", "data.num_workers", data.num_workers, fewest_workers,
                                  workers, "reading and decoding may not keep up"));
  checks.push_back(check_at_least("queue", "data.buffer_size", data.buffer_size, shortest_queue,
                                  usual_queue, "one slow clip is felt by the step"));
  return checks;
}

std::vector<SettingCheck> check_contradictions(const Resolved& settings,
                                               const SettingsMachine& machine) {
  return Contradictions(settings, machine).all();
}

}  // namespace tandem
