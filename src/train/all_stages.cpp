// `stage: all`: the three stages of a voice as three runs in one folder.
#include <fmt/format.h>

#include <filesystem>

#include "checkpoint/run_folder.h"
#include "data/corpus/clip_index.h"
#include "data/corpus/dataset.h"
#include "data/corpus/learn_vocabulary.h"
#include "data/corpus/prepare.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "models/xtts/xtts_config.h"
#include "tandem/error.h"
#include "tandem/trainer.h"
#include "text/clean.h"
#include "train/plan.h"
#include "train/sample_sentences.h"
#include "train/stages/dvae_stage.h"
#include "train/stages/gpt_stage.h"
#include "train/train_run.h"
#include "train/voice_parts.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

std::vector<std::optional<int64_t>> steps_of(const TrainingConfig& training) {
  const std::vector<std::string>& stages = voice_stages();
  std::vector<std::optional<int64_t>> steps(stages.size(), training.max_steps);
  if (training.stage_steps.empty()) return steps;
  const std::vector<std::string> parts = split(training.stage_steps, ',');
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto number = parts.size() == stages.size() ? parse_int(trim(parts[i])) : std::nullopt;
    if (!number || *number < 1) {
      throw Error(
          ErrorKind::config,
          fmt::format("training.stage_steps is \"{}\"; expected three numbers of steps, for "
                      "dvae, gpt and decoder",
                      training.stage_steps))
          .hint("for example training.stage_steps=3000,9000,6000");
    }
    steps[i] = *number;
  }
  return steps;
}

std::string index_of(const std::string& data) {
  const bool is_index = fs::is_regular_file(data) && detect_dataset(data).kind == LayoutKind::index;
  return is_index ? data : default_index(data);
}

// The second stage speaks them, hours later.
void check_sentences(const Config& config) {
  if (config.observe.sample_text.empty() || config.observe.sample_count == 0) return;
  const std::string index = index_of(config.data.train_data.value_or(""));
  if (!fs::exists(index)) return;
  try {
    const ClipIndex clips = ClipIndex::open(index);
    if (clips.size() > 0)
      find_language(config.data.language.value_or(std::string(clips[0].language)));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;  // such an index is made again
  }
}

// A voice from nothing learns its vocabulary from the texts, where none was prepared: before the
// stage that needs none takes its hours. An index that is there is somebody's choice of clips and
// stays as it is.
void have_vocabulary(const Config& config) {
  constexpr int tokens = 512;
  if (config.model.pretrained || !config.data.train_data || !find_vocabulary(config).empty())
    return;
  const std::string& data = *config.data.train_data;
  const std::string language = config.data.language.value_or("");
  log_info("`{}` has no vocab.json: {} tokens at most are learned from its texts", data, tokens);
  const std::string index = index_of(data);
  try {
    if (fs::exists(index)) {
      learn_vocabulary(index, language, tokens);
      return;
    }
  } catch (const Error& error) {
    if (index == data || error.kind() != ErrorKind::corrupt) throw;
    log_warning("{}; preparing `{}` again", error.what(), data);
  }
  prepare_corpus({.input = data,
                  .dataset = {.language = language},
                  .workers = static_cast<int>(config.data.num_workers),
                  .train_tokenizer = tokens,
                  .fewer_tokens = true,
                  .on_notice = [](const std::string& line) { log_info("{}", line); }});
}

void check_devices(const TrainPlan& plan, const Config& config) {
  for (const std::string& name : plan.strategy.replicas) {
    LogicalDevice& device = DeviceRegistry::get().find(name);
    const DeviceScope scope(device);
    check_fp8_products(config.training, voice_config(config).gpt.width, device);
  }
}

// Now, not when the first stage has taken its hours, and before anything is made.
void check_stage(const Config& config) {
  const std::string& stage = config.training.stage;
  const TrainPlan plan = make_plan(config);
  const auto& pretrained = config.model.pretrained;
  if (stage == "dvae" && !pretrained)
    check_dvae_codes(config.training, xtts_preset(config.model.size));
  if (stage != "gpt") return;
  if (!config.observe.sample_text.empty()) read_sample_sentences(config.observe.sample_text);
  check_devices(plan, config);
  check_lora(config.training, pretrained ? trained_stages(*pretrained) : std::set<std::string>());
}

}  // namespace

void check_stage_steps(const TrainingConfig& training) {
  if (training.stage == "all") steps_of(training);
}

const std::vector<std::string>& voice_stages() {
  static const std::vector<std::string> stages = {"dvae", "gpt", "decoder"};
  return stages;
}

std::vector<Config> runs_of(const Config& config, bool fresh, const StageConfigs& own) {
  if (config.training.stage != "all") return {config};
  const std::vector<std::string>& stages = voice_stages();
  const std::vector<std::optional<int64_t>> steps = steps_of(config.training);
  std::vector<Config> runs;
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto its = own.find(stages[i]);
    Config run = its == own.end() ? config : its->second;
    run.training.stage = stages[i];
    if (!config.training.stage_steps.empty()) run.training.max_steps = steps[i];
    check_stage(run);
    runs.push_back(run);
  }
  const fs::path whole = choose_run_folder(config.paths.checkpoint_dir, fresh,
                                           run_fingerprint(runs.front()), "runs", stages)
                             .path;
  fs::path from;
  for (Config& run : runs) {
    const fs::path folder = whole / run.training.stage;
    run.paths.checkpoint_dir = folder.string();
    if (!from.empty()) run.model.pretrained = from.string();
    from = folder / "model";
    check_run_folder({folder, fs::exists(folder / "latest")}, run);
  }
  have_vocabulary(config);
  check_sentences(runs[1]);
  return runs;
}

}  // namespace tandem
