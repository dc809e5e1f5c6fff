#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/profile_generate.h"
#include "cli/session.h"
#include "config/schema.h"
#include "observe/diagnose/made_speech.h"
#include "observe/diagnose/training_subject.h"
#include "observe/profile_report.h"
#include "observe/profile_summary.h"
#include "observe/profile_trace.h"
#include "observe/profile_training.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A profile takes its time; that its file has no place is said before.
void check_place(const std::string& flag, const std::string& path) {
  if (path.empty()) return;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    throw Error(ErrorKind::io, fmt::format("{} is `{}`, but there is no folder `{}`", flag, path,
                                           folder.string()));
}

int64_t whole_number(const Arguments& arguments, const char* flag, int64_t otherwise) {
  const auto number = arguments.integer(flag);
  if (!number) return otherwise;
  constexpr int most = 100000;
  if (*number < 1 || *number > most)
    throw Error(ErrorKind::usage, fmt::format("{} is {}; expected 1 to {}", flag, *number, most));
  return *number;
}

// As `tandem tune --for` says it; captions alone mean generating too.
bool wants_generate(const Arguments& arguments, const Config& config) {
  const std::string target = arguments.value("--for");
  if (target != "" && target != "train" && target != "generate")
    throw Error(ErrorKind::usage, "--for is `" + target + "`; expected train or generate");
  if (!target.empty()) return target == "generate";
  return arguments.has("--prompt") || (config.data.captions_file && !config.data.train_data);
}

// Steps and batches differ in length by far.
ProfileOptions options_of(const Arguments& arguments, bool generate) {
  return {.steps = whole_number(arguments, "--num-steps", generate ? 3 : 20),
          .traced_steps = whole_number(arguments, "--traced-steps", generate ? 1 : 5),
          .cost_rounds = arguments.has("--no-cost") ? 0
                         : generate                 ? 3
                                                    : 5};
}

Arguments train_words(const Arguments& arguments) {
  Arguments words = arguments;
  const auto set = [&](const char* flag, const char* key) {
    if (arguments.has(flag)) words.rest.push_back(fmt::format("{}={}", key, arguments.value(flag)));
  };
  set("--data", "data.train_data");
  set("--model", "model.pretrained");
  return words;
}

Profile profile_train(const Arguments& words, Config config, const ProfileOptions& options) {
  if (config.training.stage == "all") {
    throw Error(ErrorKind::usage, "stage `all` is three stages one after another")
        .hint("profile one at a time: --stage dvae, --stage gpt or --stage decoder");
  }
  std::unique_ptr<MadeSpeech> made;
  if (!config.data.train_data && fs::is_directory(config.paths.data_dir)) {
    config.data.train_data = config.paths.data_dir;
    config = fit_for_diagnosis(std::move(config));
  } else if (!config.data.train_data) {
    made = std::make_unique<MadeSpeech>();
    config.data.train_data = made->folder().string();
    config = fit_for_diagnosis(std::move(config));
    log_warning("no data was given: steps of stage {} are made of 64 made clips (--data DIR)",
                config.training.stage);
  }
  configure_or_stop(device_request(words, config));
  return profile_training(config, options);
}

int run_profile(const Arguments& arguments) {
  const std::string trace_file = arguments.value("--trace");
  std::string report_file = arguments.value("--report");
  if (report_file.empty() && !trace_file.empty())
    report_file = fs::path(trace_file).replace_extension(".html").string();
  check_place("--trace", trace_file);
  check_place("--report", report_file);
  const bool generate = wants_generate(arguments, resolve_settings(arguments).config);
  const ProfileOptions options = options_of(arguments, generate);
  const Arguments words = generate ? generate_words(arguments) : train_words(arguments);
  const Resolved resolved = resolve_settings(words);
  if (arguments.has("--print-config")) {
    print(print_config(resolved));
    return 0;
  }
  const Profile profile =
      generate ? profile_generate(words, options) : profile_train(words, resolved.config, options);
  print(arguments.has("--json") ? profile_json(profile) : profile_text(profile));
  if (!trace_file.empty()) {
    const ProfileTrace trace = make_trace(profile);
    write_file_atomically(trace_file, trace.json);
    log_info("trace: {} ({} slices, {}); open it at https://ui.perfetto.dev", trace_file,
             trace.counts.slices(), format_bytes(trace.json.size()));
    if (trace.counts.left_out > 0)
      log_warning("{} kernels are not in the trace, which would be too large to open",
                  trace.counts.left_out);
  }
  if (!report_file.empty()) {
    write_file_atomically(report_file, make_profile_report(profile));
    log_info("report: {}", report_file);
  }
  return 0;
}

}  // namespace

Command profile_command() {
  return {
      .name = "profile",
      .summary = "where the time and the memory of a training step or a batch of clips go",
      .rest = "[key=value ...]",
      .details =
          "Takes the settings of `tandem train`, or with --for generate those of `tandem "
          "generate`,\n"
          "and trains for some steps, or makes some batches of clips, on the real data; nothing "
          "is\n"
          "kept of it. Prints the parts of a step, operations and kernels by time and by share "
          "of\n"
          "what the device can do, memory by part, and what the profiling itself costs.\n\n"
          "  tandem profile --stage gpt --train-data corpus/ --num-steps 50 --trace p.json\n"
          "  tandem profile --train-data book.txt --simulate-gpus 2 --data-gpu 0 --model-gpu 1 "
          "--json\n"
          "  tandem profile --for generate --model musicgen-small --captions my.csv "
          "--batch-size 32",
      .settings = read_by_train | read_by_generate,
      .chooses_devices = true,
      .options = {{"--for", "WHAT", "train (default) or generate"},
                  {"--num-steps", "N", "steps that are timed (20), or batches (3)"},
                  {"--traced-steps", "N",
                   "steps whose operations and kernels are traced, behind the timed ones (5), or "
                   "batches (1)"},
                  {"--data", "DIR", "the corpus to train on, or the captions to generate from"},
                  {"--model", "DIR", "the model folder to train from, or to generate with"},
                  {"--prompt", "TEXT", "a caption to generate from; may be repeated", "",
                   /*repeats=*/true},
                  {"--seconds", "S", "length of a clip (else generation.max_new_tokens)"},
                  {"--trace", "FILE.json", "write a trace for Perfetto or chrome://tracing"},
                  {"--report", "FILE.html",
                   "write a page with timeline and tables; with --trace: beside it"},
                  {"--no-cost", "", "do not measure what the profiling itself costs"},
                  {"--json", "", "the figures as one JSON document"}},
      .run = run_profile};
}

}  // namespace tandem
