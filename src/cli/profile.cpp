#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/session.h"
#include "config/schema.h"
#include "observe/profile_report.h"
#include "observe/profile_summary.h"
#include "observe/profile_trace.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

// A profile takes its time; that its file has no place is said before.
void check_place(const std::string& flag, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder))
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

int run_profile(const Arguments& arguments) {
  ProfileOptions options{.steps = whole_number(arguments, "--num-steps", 20),
                         .traced_steps = whole_number(arguments, "--traced-steps", 5),
                         .cost_rounds = arguments.has("--no-cost") ? 0 : 5};
  const std::string trace_file = arguments.value("--trace");
  std::string report_file = arguments.value("--report");
  if (report_file.empty() && !trace_file.empty())
    report_file = std::filesystem::path(trace_file).replace_extension(".html").string();
  check_place("--trace", trace_file);
  check_place("--report", report_file);
  const Resolved resolved = resolve_settings(arguments);
  if (arguments.has("--print-config")) {
    print(print_config(resolved));
    return 0;
  }
  if (resolved.config.training.stage == "all") {
    throw Error(ErrorKind::usage, "stage `all` is three stages one after another")
        .hint("profile one at a time: --stage dvae, --stage gpt or --stage decoder");
  }
  configure_or_stop(device_request(arguments, resolved.config));
  const Profile profile = profile_training(resolved.config, options);
  print(arguments.has("--json") ? profile_json(profile) : profile_text(profile));
  if (!trace_file.empty()) {
    const ProfileTrace trace = make_trace(profile);
    write_file_atomically(trace_file, trace.json);
    log_info("trace: {} ({} slices, {}); open it at https://ui.perfetto.dev", trace_file,
             trace.counts.slices(), format_bytes(trace.json.size()));
  }
  if (!report_file.empty()) {
    write_file_atomically(report_file, make_profile_report(profile));
    log_info("report: {}", report_file);
  }
  return 0;
}

}  // namespace

Command profile_command() {
  return {.name = "profile",
          .summary = "where the time and the memory of a training step go",
          .rest = "[key=value ...]",
          .details =
              "Takes the settings of `tandem train` and trains for some steps on the real data; "
              "nothing\n"
              "is kept of it. Prints the parts of a step, operations and kernels by time and by "
              "share of\n"
              "what the device can do, memory by part, and what the profiling itself costs.\n\n"
              "  tandem profile --stage gpt --train-data corpus/ --num-steps 50 --trace p.json\n"
              "  tandem profile --train-data book.txt --simulate-gpus 2 --data-gpu 0 --model-gpu 1 "
              "--json",
          .settings = read_by_train,
          .chooses_devices = true,
          .options = {{"--num-steps", "N", "steps that are timed (20)"},
                      {"--traced-steps", "N",
                       "steps whose operations and kernels are traced, behind the timed ones (5)"},
                      {"--trace", "FILE.json", "write a trace for Perfetto or chrome://tracing"},
                      {"--report", "FILE.html",
                       "write a page with timeline and tables; with --trace: beside it"},
                      {"--no-cost", "", "do not measure what the profiling itself costs"},
                      {"--json", "", "the figures as one JSON document"}},
          .run = run_profile};
}

}  // namespace tandem
