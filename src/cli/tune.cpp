#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/tune_probe.h"
#include "cli/tune_session.h"
#include "config/groups.h"
#include "config/schema.h"
#include "observe/tune_preset.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

bool named_by_user(const Resolved& resolved, const std::string& key) {
  const Source::Layer layer = resolved.sources.at(key).layer;
  return layer != Source::Layer::standard && layer != Source::Layer::level &&
         layer != Source::Layer::preset;
}

bool wants_generate(const Arguments& arguments, const Resolved& resolved) {
  const std::string target = arguments.value("--for");
  if (target != "" && target != "train" && target != "generate") {
    throw Error(ErrorKind::usage, "--for is `" + target + "`; expected train or generate");
  }
  if (!target.empty()) return target == "generate";
  return resolved.config.data.captions_file && !resolved.config.data.train_data;
}

// --data and --model mean one setting each, which one depends on what is tuned.
Arguments with_meanings(const Arguments& arguments, bool generate) {
  Arguments out = arguments;
  const auto set = [&](const char* flag, const char* key) {
    if (arguments.has(flag)) out.rest.push_back(fmt::format("{}={}", key, arguments.value(flag)));
  };
  set("--data", generate ? "data.captions_file" : "data.train_data");
  if (!generate) set("--model", "model.pretrained");
  for (const auto& [flag, value] : arguments.settings)
    if (generate && flag == "--batch-size") out.rest.push_back("generation.batch_size=" + value);
  return out;
}

// A folder or an index holds speech; the stage that is trained most is the GPT.
void choose_stage(Resolved& resolved) {
  const auto& data = resolved.config.data.train_data;
  if (!data) {
    throw Error(ErrorKind::config, "no data was given to measure with")
        .hint("--data DIR, the corpus you are going to train on");
  }
  const bool folder = std::filesystem::is_directory(*data) || data->ends_with(".index");
  if (!folder || named_by_user(resolved, "training.stage")) return;
  resolved.config.training.stage = "gpt";
  resolved.sources.at("training.stage") = {Source::Layer::file, "the data is speech"};
}

std::string model_folder(const Arguments& arguments, const Config& config) {
  const std::filesystem::path folder =
      arguments.has("--model") ? std::filesystem::path(arguments.value("--model"))
                               : std::filesystem::path(config.paths.model_dir) / config.model.name;
  if (std::filesystem::is_directory(folder)) return folder.string();
  throw Error(ErrorKind::io, fmt::format("there is no model folder `{}`", folder.string()))
      .hint("--model DIR, a MusicGen folder");
}

double minutes_of(const Arguments& arguments) {
  const std::string text = arguments.value("--minutes", "5");
  const auto minutes = parse_double(text);
  if (minutes && *minutes > 0 && *minutes <= 600) return *minutes;
  throw Error(ErrorKind::usage,
              "--minutes is `" + text + "`; expected a number above 0, at most 600");
}

TuneSettings values_of(const Resolved& resolved, const std::vector<std::string>& keys) {
  TuneSettings values;
  for (const std::string& key : keys)
    values[key] = format_value(find_by_key(key)->get(resolved.config));
  return values;
}

TuneTask train_task(const Resolved& resolved, const TunePlan& plan) {
  const Config& config = resolved.config;
  const bool speech = config.training.stage != "bytes";
  std::vector<std::string> keys = {"data.batch_size",    "data.num_workers",
                                   "data.buffer_size",   "training.gradient_accumulation_steps",
                                   "training.precision", "training.recompute"};
  if (speech) keys.emplace_back("data.buckets");
  TuneTask task{.guess = values_of(resolved, keys),
                .buckets = speech,
                .recompute = plan.kind == "cuda" && config.training.stage == "gpt",
                .most_batch = 1024,
                .most_workers = 2 * static_cast<int64_t>(std::thread::hardware_concurrency())};
  for (const std::string& key : keys)
    if (named_by_user(resolved, key)) task.held.insert(key);
  // A batch that was asked for is that of a step; it may be made of parts, unless those were asked
  // for too.
  const char *batch = "data.batch_size", *parts = "training.gradient_accumulation_steps";
  if (task.held.contains(batch) && !task.held.contains(parts)) {
    task.held.erase(batch);
    task.clips_a_step = task.most_batch = config.data.batch_size;
  }
  if (plan.kind == "cuda")
    task.precisions = plan.capability >= 8 ? std::vector<std::string>{"tf32", "bf16"}
                                           : std::vector<std::string>{"fp16"};
  return task;
}

TuneTask generate_task(const Resolved& resolved, const TunePlan& plan) {
  TuneTask task{.generate = true,
                .guess = values_of(resolved, {"generation.kv_cache"}),
                .most_batch = plan.clips > 0 ? plan.clips : 4096,
                .first_batch = plan.batch};
  task.guess["generation.batch_size"] =
      std::to_string(std::clamp<int64_t>(plan.batch, 1, task.most_batch));
  for (const char* key : {"generation.batch_size", "generation.kv_cache"})
    if (named_by_user(resolved, key)) task.held.insert(key);
  return task;
}

void add_plan(const TunePlan& plan, TuneTask& task) {
  task.fixed_bytes = plan.fixed_bytes;
  task.bytes_a_clip = plan.bytes_a_clip;
  task.speed_counts = plan.kind != "simulated";
  if (task.first_batch > 0 || plan.limit_bytes <= 0 || plan.bytes_a_clip <= 0) return;
  const double most = (0.875 * plan.limit_bytes - plan.fixed_bytes) / plan.bytes_a_clip;
  task.first_batch = std::clamp<int64_t>(static_cast<int64_t>(most), 1, task.most_batch);
}

// The preset that is meant for this card is the guess to beat, unless the user named one.
std::string add_guess(const Arguments& arguments, const std::string& gpu, Arguments& words) {
  if (arguments.has("--preset")) return "preset " + arguments.value("--preset");
  const std::string preset = preset_for_gpu(gpu);
  if (preset.empty()) return "the settings";
  words.options["--preset"] = preset;
  return "preset " + preset;
}

int run_tune(const Arguments& arguments) {
  if (arguments.has("--probe")) return run_tune_probe(arguments, resolve_settings(arguments));
  const double minutes = minutes_of(arguments);
  Arguments words = arguments;
  Resolved resolved = resolve_settings(arguments);
  const bool generate = wants_generate(arguments, resolved);
  words = with_meanings(arguments, generate);
  const auto settle = [&] {
    resolved = resolve_settings(words);
    if (!generate) choose_stage(resolved);
  };
  settle();
  if (arguments.has("--print-config")) {
    print(print_config(resolved));
    return 0;
  }
  const std::string model = generate ? model_folder(arguments, resolved.config) : "";
  if (arguments.has("--out")) check_preset_file(arguments.value("--out"));
  catch_stop_signals();

  TuneSession session({.generate = generate,
                       .minutes = minutes,
                       .probe_seconds = parse_double(arguments.value("--probe-seconds")),
                       .model = model},
                      arguments);
  session.set_base(resolved);
  const TunePlan plan = session.plan();
  TuneReport report{.gpu = plan.gpu, .date = today()};
  report.guess_name = add_guess(arguments, plan.gpu, words);
  settle();
  session.set_base(resolved);
  const std::filesystem::path file = arguments.has("--out")
                                         ? std::filesystem::path(arguments.value("--out"))
                                         : local_preset_file(plan.gpu);
  check_preset_file(file);
  report.task = generate ? generate_task(resolved, plan) : train_task(resolved, plan);
  add_plan(plan, report.task);
  report.subject =
      generate ? fmt::format("generate with `{}`, {} tokens a clip", model,
                             resolved.config.generation.max_new_tokens)
               : fmt::format("train stage {}, {}, data `{}`", resolved.config.training.stage,
                             resolved.config.model.pretrained
                                 ? "from `" + *resolved.config.model.pretrained + "`"
                                 : "size " + resolved.config.model.size,
                             *resolved.config.data.train_data);
  log_info("tuning on {}: {}; {:g} minutes at most", plan.gpu.empty() ? "the CPU" : plan.gpu,
           report.subject, minutes);
  report.result = session.search(report.task);
  if (!report.task.speed_counts) {
    report.result.notes.emplace_back(
        "simulated devices have memory but no speed of their own: only the batch was searched");
  }
  report.unit = session.unit();
  report.seconds = session.seconds();
  write_preset_part(file, report);
  for (const std::string& note : report.result.notes) log_info("note: {}", note);
  print(arguments.has("--json") ? tune_json(report, file.string()) : tune_table(report));
  log_info("written to `{}`; use it with {}", file.string(),
           arguments.has("--out") ? "--config " + file.string()
                                  : "--preset " + local_preset_for_gpu(plan.gpu) + " or auto");
  return 0;
}

}  // namespace

Command tune_command() {
  std::vector<Option> options = {
      {"--for", "WHAT", "train (default) or generate"},
      {"--data", "DIR", "the corpus to train on, or the captions to generate from"},
      {"--model", "DIR", "the model folder to train from, or to generate with"},
      {"--minutes", "M", "time it may take (default 5)"},
      {"--out", "FILE.yaml", "the preset to write (default configs/local/<gpu>.yaml)"},
      {"--json", "", "one JSON document"}};
  for (const Option& option : tune_probe_options()) options.push_back(option);
  return {.name = "tune",
          .summary = "find the batch, workers and more that suit this machine, by measuring",
          .rest = "[key=value ...]",
          .details =
              "Takes the settings of `train` or `generate`. What you set stays; the rest is "
              "searched:\n"
              "batch, accumulation, precision, recompute, workers, buffer and buckets, or clips at "
              "once.\n"
              "Every measurement is a program of its own with limits of memory and time.\n\n"
              "  tandem tune --stage gpt --model xtts_v2 --data corpus/\n"
              "  tandem tune --for generate --model musicgen-small --max-new-tokens 1503\n"
              "  tandem train --preset auto ...      what was found, where there is something",
          .settings = read_by_train | read_by_generate,
          .chooses_devices = true,
          .options = options,
          .run = run_tune};
}

}  // namespace tandem
