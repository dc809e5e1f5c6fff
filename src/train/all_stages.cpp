// `stage: all`: the three stages of a voice as three runs in one folder.
#include <fmt/format.h>

#include <filesystem>

#include "checkpoint/run_folder.h"
#include "data/corpus/prepare.h"
#include "tandem/error.h"
#include "tandem/trainer.h"
#include "train/sample_sentences.h"
#include "train/train_run.h"
#include "train/voice_parts.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

const std::vector<std::string> stages = {"dvae", "gpt", "decoder"};

std::vector<std::optional<int64_t>> steps_of(const TrainingConfig& training) {
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
// stage that needs none takes its hours.
void have_vocabulary(const Config& config) {
  constexpr int tokens = 512;
  if (config.model.pretrained || !config.data.train_data || !find_vocabulary(config).empty())
    return;
  const std::string& data = *config.data.train_data;
  if (fs::path(data).extension() == ".index")
    throw Error(ErrorKind::config, fmt::format("there is no vocab.json beside `{}`, and no "
                                               "data.tokenizer: the GPT needs one",
                                               data))
        .hint(fmt::format("make one with: tandem prepare DIR --train-tokenizer {} --out {}", tokens,
                          data));
  log_info("`{}` has no vocab.json: {} tokens at most are learned from its texts", data, tokens);
  prepare_corpus({.input = data,
                  .dataset = {.language = config.data.language.value_or("")},
                  .workers = static_cast<int>(config.data.num_workers),
                  .train_tokenizer = tokens,
                  .fewer_tokens = true,
                  .on_notice = [](const std::string& line) { log_info("{}", line); }});
}

}  // namespace

std::vector<Config> runs_of(const Config& config, bool fresh) {
  if (config.training.stage != "all") return {config};
  // Now, not when the first stage has taken its hours.
  if (!config.observe.sample_text.empty()) read_sample_sentences(config.observe.sample_text);
  const std::vector<std::optional<int64_t>> steps = steps_of(config.training);
  have_vocabulary(config);
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
    runs.push_back(run);
  }
  return runs;
}

}  // namespace tandem
