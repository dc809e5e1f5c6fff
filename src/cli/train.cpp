#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/stage_settings.h"
#include "cli/train_view.h"
#include "cli/train_watch.h"
#include "config/levels.h"
#include "config/schema.h"
#include "tandem/trainer.h"
#include "util/log.h"
#include "util/shell_word.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

// Tensor operations, which are counted on simulated devices only.
void report_operations(const TrainResult& result) {
  for (const auto& [name, use] : result.devices)
    if (use.operations > 0) log_info("  {}: {} operations", name, use.operations);
}

void run_one(const Config& config, const TrainOptions& options) {
  TrainView view(config);
  const TrainResult result =
      view.show([&](const TrainHooks& hooks) { return train(config, hooks, options); });
  if (result.already_finished) return;
  const int64_t steps = result.last_step - result.first_step;
  log_info(
      "done: {}{}, in {}",
      steps > 0 ? fmt::format("{} steps, loss {:.4f} -> {:.4f}", steps, result.first_loss,
                              result.last_loss)
                : "what was left to do behind the last step",
      result.validation_loss ? fmt::format(", validation {:.4f}", *result.validation_loss) : "",
      result.folder);
  report_operations(result);
  view.print_end();
}

// By stage: "data.batch_size=64", of the settings that are not those of the whole.
std::vector<std::pair<std::string, std::string>> own_settings(const StageSettings& settings) {
  std::vector<std::pair<std::string, std::string>> all;
  std::map<std::string, std::string> whole;
  for (const ChangedSetting& changed : changed_settings(settings.whole))
    whole[changed.key] = changed.value;
  for (const std::string& stage : voice_stages()) {
    const auto own = settings.of_stage.find(stage);
    if (own == settings.of_stage.end()) continue;
    for (const ChangedSetting& changed : changed_settings(own->second))
      if (const auto same = whole.find(changed.key);
          same == whole.end() || same->second != changed.value)
        all.emplace_back(stage, changed.key + "=" + changed.value);
  }
  return all;
}

// All of them are in the run's config.yaml; these are what makes it this run.
void show_settings(const StageSettings& settings) {
  log_info("{}", describe_level(settings.whole));
  for (const ChangedSetting& changed : changed_settings(settings.whole))
    log_info("  {:<36} {:<24} {}", changed.key, changed.value, changed.where);
  for (const auto& [stage, line] : own_settings(settings)) log_info("  {}:{}", stage, line);
}

int run_train(const Arguments& arguments) {
  if (asks_to_watch(arguments)) return run_watch(arguments);
  const StageSettings settings = resolve_stage_settings(arguments);
  const Resolved& resolved = settings.whole;
  if (arguments.has("--print-config")) {
    print(print_config(resolved));
    for (const auto& [stage, line] : own_settings(settings))
      print("# " + stage + ":" + line + "\n");
    return 0;
  }
  configure_or_stop(device_request(arguments, resolved.config));
  if (arguments.has("--dry-run")) {
    print(plan_training(resolved.config));
    return 0;
  }
  catch_stop_signals();
  show_settings(settings);
  const bool fresh = arguments.has("--fresh");
  StageConfigs own;
  for (const auto& [stage, its] : settings.of_stage) own[stage] = its.config;
  const std::vector<Config> runs = runs_of(resolved.config, fresh, own);
  for (const Config& run : runs) {
    if (runs.size() > 1) log_info("stage {}", run.training.stage);
    const auto its = settings.of_stage.find(run.training.stage);
    TrainOptions options{.fresh = fresh && runs.size() == 1,
                         .resolved_config_yaml =
                             print_config(its == settings.of_stage.end() ? resolved : its->second)};
    if (fresh)
      options.goes_on_with = "the same command with that --checkpoint-dir, without --fresh";
    options.asked_fresh = fresh;
    if (fresh && &run == &runs.front()) options.begins_with = "the same command begins it";
    if (runs.size() > 1) {
      options.alone_with = " --stage " + run.training.stage;
      if (run.model.pretrained)
        options.alone_with += " --pretrained " + shell_word(*run.model.pretrained);
      if (run.training.max_steps)
        options.alone_with += fmt::format(" --max-steps {}", *run.training.max_steps);
    }
    if (fresh && runs.size() > 1)
      options.goes_on_with = fmt::format(
          "the same command with --checkpoint-dir {}, without --fresh",
          shell_word(std::filesystem::path(run.paths.checkpoint_dir).parent_path().string()));
    run_one(run, options);
  }
  return 0;
}

std::vector<Option> train_options() {
  std::vector<Option> options = {
      {"--dry-run", "", "resolve settings, configure devices, print the plan, touch no data"},
      {"--fresh", "", "start again in a new folder instead of resuming"}};
  for (const Option& option : watch_options()) options.push_back(option);
  return options;
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .summary = "train a voice, or any of its three stages",
      .rest = "[key=value ...]",
      .details =
          "Rerunning the same command goes on from the last checkpoint. Ctrl-C saves one first.\n"
          "Stages: dvae (sound to codes), gpt (text to codes), decoder (codes to sound), all "
          "three\n"
          "one after another (all), and bytes (a small GPT on the bytes of a text). Settings of "
          "one\n"
          "of three: gpt:data.batch_size=64.\n\n"
          "  tandem train --stage gpt --pretrained xtts_v2 --train-data corpus/ --val-data val/\n"
          "  tandem train --stage all --model-size small --train-data corpus/ --max-steps 5000\n"
          "  tandem train --train-data book.txt --data-gpu 0 --model-gpu 1 --dry-run\n"
          "  tandem train --watch runs/2026-11-15-120000",
      .settings = read_by_train,
      .chooses_devices = true,
      .options = train_options(),
      .run = run_train};
}

}  // namespace tandem
