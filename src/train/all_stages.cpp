// `stage: all`: the three stages of a voice as three runs in one folder.
#include <fmt/format.h>

#include <filesystem>

#include "checkpoint/run_folder.h"
#include "data/corpus/dataset.h"
#include "data/corpus/learn_vocabulary.h"
#include "data/corpus/prepare.h"
#include "models/xtts/xtts_config.h"
#include "tandem/error.h"
#include "tandem/trainer.h"
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
  const bool is_index = fs::is_regular_file(data) && detect_dataset(data).kind == LayoutKind::index;
  const std::string index = is_index ? data : default_index(data);
  if (fs::exists(index)) {
    learn_vocabulary(index, language, tokens);
    return;
  }
  prepare_corpus({.input = data,
                  .dataset = {.language = language},
                  .workers = static_cast<int>(config.data.num_workers),
                  .train_tokenizer = tokens,
                  .fewer_tokens = true,
                  .on_notice = [](const std::string& line) { log_info("{}", line); }});
}

// Now, not when the first stage has taken its hours, and before anything is made.
void check_stages(const Config& config) {
  if (!config.observe.sample_text.empty()) read_sample_sentences(config.observe.sample_text);
  for (const std::string& stage : voice_stages()) {
    Config run = config;
    run.training.stage = stage;
    make_plan(run);
  }
  const auto& pretrained = config.model.pretrained;
  if (!pretrained) check_dvae_codes(config.training, xtts_preset(config.model.size));
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

std::vector<Config> runs_of(const Config& config, bool fresh) {
  if (config.training.stage != "all") return {config};
  const std::vector<std::string>& stages = voice_stages();
  const std::vector<std::optional<int64_t>> steps = steps_of(config.training);
  check_stages(config);
  Config first = config;
  first.training.stage = stages.front();
  const fs::path whole =
      choose_run_folder(config.paths.checkpoint_dir, fresh, run_fingerprint(first), "runs", stages)
          .path;
  std::vector<Config> runs;
  fs::path from;
  for (size_t i = 0; i < stages.size(); ++i) {
    Config run = config;
    run.training.stage = stages[i];
    run.training.max_steps = steps[i];
    run.paths.checkpoint_dir = (whole / stages[i]).string();
    if (!from.empty()) run.model.pretrained = from.string();
    from = whole / stages[i] / "model";
    check_run_folder({run.paths.checkpoint_dir, fs::exists(whole / stages[i] / "latest")}, run);
    runs.push_back(run);
  }
  have_vocabulary(config);
  return runs;
}

}  // namespace tandem
