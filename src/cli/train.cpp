#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "cli/command.h"
#include "cli/session.h"
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

// All of them are in the run's config.yaml; these are what makes it this run.
void show_settings(const Resolved& resolved) {
  log_info("{}", describe_level(resolved));
  for (const ChangedSetting& changed : changed_settings(resolved))
    log_info("  {:<36} {:<24} {}", changed.key, changed.value, changed.where);
}

// Data that can only be speech asks for a voice where no stage was named.
void choose_stage(Resolved& resolved) {
  namespace fs = std::filesystem;
  Source& source = resolved.sources["training.stage"];
  if (source.layer != Source::Layer::standard || !resolved.config.data.train_data) return;
  const fs::path data = *resolved.config.data.train_data;
  std::error_code ignored;
  const std::set<std::string> of_speech = {".index", ".csv", ".tsv", ".jsonl", ".tar"};
  if (!fs::is_directory(data, ignored) && !of_speech.contains(data.extension().string())) return;
  const bool pretrained = resolved.config.model.pretrained.has_value();
  resolved.config.training.stage = pretrained ? "gpt" : "all";
  source = {Source::Layer::preset, pretrained ? "speech and a pretrained model" : "speech"};
  log_info("stage {}, as the data is {}; --stage names another", resolved.config.training.stage,
           source.where);
}

int run_train(const Arguments& arguments) {
  if (asks_to_watch(arguments)) return run_watch(arguments);
  Resolved resolved = resolve_settings(arguments);
  choose_stage(resolved);
  if (arguments.has("--print-config")) {
    print(print_config(resolved));
    return 0;
  }
  configure_or_stop(device_request(arguments, resolved.config));
  if (arguments.has("--dry-run")) {
    print(plan_training(resolved.config));
    return 0;
  }
  catch_stop_signals();
  show_settings(resolved);
  const bool fresh = arguments.has("--fresh");
  const std::vector<Config> runs = runs_of(resolved.config, fresh);
  for (const Config& run : runs) {
    if (runs.size() > 1) log_info("stage {}", run.training.stage);
    TrainOptions options{.fresh = fresh && runs.size() == 1,
                         .resolved_config_yaml = print_config(resolved)};
    if (fresh)
      options.goes_on_with = "the same command with that --checkpoint-dir, without --fresh";
    options.asked_fresh = fresh;
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
          "one after another (all), and bytes (a small GPT on the bytes of a text).\n\n"
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
