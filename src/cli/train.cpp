#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/session.h"
#include "config/schema.h"
#include "observe/metrics_file.h"
#include "observe/progress.h"
#include "tandem/trainer.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

// Progress on the terminal and metrics.jsonl in the run's folder.
class TrainView {
 public:
  explicit TrainView(const Config& config) : log_step_(config.observe.log_step) {}

  TrainHooks hooks() {
    return {.on_start = [this](const std::string& folder, int64_t first,
                               int64_t total) { start(folder, first, total); },
            .on_step = [this](const StepReport& report) { step(report); },
            .on_checkpoint = [](const std::string& path) { log_debug("saved {}", path); }};
  }

 private:
  void start(const std::string& folder, int64_t first, int64_t total) {
    metrics_ = std::make_unique<MetricsFile>(folder + "/metrics.jsonl", first);
    progress_ = std::make_unique<Progress>(first, total, log_step_);
  }
  void step(const StepReport& report) {
    metrics_->add(report);
    if (report.validation) {
      validation_ = fmt::format("  val {:.4f}", report.loss);
      return;
    }
    progress_->update(
        report.step,
        fmt::format("loss {:.4f}{}  norm {:.2f}  lr {:.1e}  {:.0f} tok/s  wait {:.1f}%",
                    report.loss, validation_, report.gradient_norm, report.learning_rate,
                    report.tokens_per_second, 100 * report.wait_share));
  }

  int64_t log_step_;
  std::string validation_;
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<Progress> progress_;
};

void report_devices(const TrainResult& result) {
  for (const auto& [name, use] : result.devices) {
    // Operations are counted on simulated devices only.
    const std::string counted =
        use.operations ? fmt::format("{} operations, ", use.operations) : "";
    log_info("  {}: {}peak {}", name, counted, format_bytes(use.peak_bytes));
  }
}

int run_train(const Arguments& arguments) {
  const Resolved resolved = resolve_settings(arguments);
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
  TrainResult result;
  {
    TrainView view(resolved.config);
    result =
        train(resolved.config, view.hooks(),
              {.fresh = arguments.has("--fresh"), .resolved_config_yaml = print_config(resolved)});
  }
  if (result.already_finished) return 0;
  log_info(
      "done: {} steps, loss {:.4f} -> {:.4f}{}, in {}", result.last_step - result.first_step,
      result.first_loss, result.last_loss,
      result.validation_loss ? fmt::format(", validation {:.4f}", *result.validation_loss) : "",
      result.folder);
  report_devices(result);
  return 0;
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .summary = "train a model",
      .rest = "[key=value ...]",
      .details =
          "Rerunning the same command goes on from the last checkpoint. Ctrl-C saves one first.\n"
          "Stages of this version: bytes (a small GPT on the bytes of a text).\n\n"
          "  tandem train --train-data book.txt --max-steps 200\n"
          "  tandem train --train-data book.txt --data-gpu 0 --model-gpu 1 --dry-run",
      .settings = read_by_train,
      .chooses_devices = true,
      .options = {{"--dry-run", "",
                   "resolve settings, configure devices, print the plan, touch no data"},
                  {"--fresh", "", "start again in a new folder instead of resuming"}},
      .run = run_train};
}

}  // namespace tandem
