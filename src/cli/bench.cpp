#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/bench_compare.h"
#include "cli/bench_list.h"
#include "cli/bench_sweep.h"
#include "cli/bench_table.h"
#include "cli/command.h"
#include "cli/session.h"
#include "config/schema.h"
#include "device/torch_errors.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

struct Wishes {
  std::string format = "md", out = "", out_format = "";
  int64_t warm_up = 0, repeat = 1;
  std::optional<OldBench> old = {};
  double tolerance = 0.1;
};

bool is_format(const std::string& name) { return name == "md" || name == "csv" || name == "json"; }

Wishes wishes_of(const Arguments& arguments) {
  Wishes wishes;
  wishes.format = choice_option(arguments, "--format", "md", {"md", "csv", "json"});
  wishes.repeat = count_option(arguments, "--repeat", "1", 1000);
  const auto warm_up = parse_int(arguments.value("--warm-up", "0"));
  if (!warm_up || *warm_up < 0 || *warm_up > 1000)
    throw Error(ErrorKind::usage, "--warm-up is `" + arguments.value("--warm-up") +
                                      "`; expected a whole number from 0 to 1000");
  wishes.warm_up = *warm_up;
  wishes.tolerance = number_option(arguments, "--tolerance", "10", 0) / 100;
  wishes.out = arguments.value("--out");
  if (arguments.has("--out")) {
    wishes.out_format =
        wishes.out.substr(std::min(wishes.out.rfind('.'), wishes.out.size() - 1) + 1);
    if (!is_format(wishes.out_format))
      throw Error(ErrorKind::usage,
                  "--out is `" + wishes.out + "`; expected a name that ends in .md, .csv or .json");
  }
  return wishes;
}

// Before minutes of measuring, not after.
void check_may_write(const std::string& file) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(file, ignored).parent_path();
  if (!std::filesystem::is_directory(file, ignored) &&
      std::filesystem::is_directory(folder, ignored) && access(folder.c_str(), W_OK) == 0)
    return;
  throw Error(ErrorKind::io, fmt::format("--out `{}` cannot be written", file))
      .hint("name a file in a folder that is there and that you may write to");
}

std::string in_words(const Bench& bench, const BenchJob& job) {
  const std::string row = row_name(job.parameters, "");
  return std::string(bench.name) + (row.empty() ? "" : ": " + row);
}

// Every run of one combination of parameters.
BenchRecord run_job(const Bench& bench, BenchJob job, const Wishes& wishes) {
  BenchRecord record;
  for (int64_t i = 0; i < wishes.warm_up + wishes.repeat; ++i) {
    const bool counts = i >= wishes.warm_up;
    if (wishes.warm_up + wishes.repeat > 1)
      log_info("{}, {} {} of {}", in_words(bench, job), counts ? "run" : "warm-up",
               counts ? i - wishes.warm_up + 1 : i + 1, counts ? wishes.repeat : wishes.warm_up);
    job.first = i == 0;
    BenchRecord next = bench.run(job);
    if (!counts) continue;
    if (record.rows.empty()) {
      record = std::move(next);
    } else {
      merge(record, next);
    }
  }
  mark(record, job.parameters);
  return record;
}

// A combination that runs out of memory is left out of a sweep, and said so; the others count.
BenchRecord run_all(const Bench& bench, const std::vector<BenchJob>& jobs, const Wishes& wishes) {
  BenchRecord record;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs.size() > 1)
      log_info("combination {} of {}: {}", i + 1, jobs.size(), row_name(jobs[i].parameters, ""));
    try {
      append(record, run_job(bench, jobs[i], wishes));
    } catch (const std::exception& error) {
      const Explanation explanation = explain_with_torch(error);
      if (jobs.size() == 1 || explanation.kind != ErrorKind::memory) throw;
      log_warning("{} is left out: {}", row_name(jobs[i].parameters, ""), explanation.sentence);
    }
  }
  if (record.rows.empty())
    throw Error(ErrorKind::memory, "every combination of parameters ran out of memory");
  settle(record);
  return record;
}

// The command as it has to be given again for the same figures: how they are shown does not count.
std::string command_text(const Arguments& arguments) {
  std::string text = "tandem bench";
  const auto add = [&](const std::string& word) {
    const bool plain = word.find_first_of(" \t\"'$`\\;&|<>()*?") == std::string::npos;
    text += plain && !word.empty() ? " " + word : " '" + word + "'";
  };
  for (const std::string& word : arguments.rest) add(word);
  for (const auto& [flag, value] : arguments.options) {
    const auto& known = bench_options();
    const auto option = std::ranges::find_if(
        known, [&](const BenchOption& entry) { return entry.option.flag == flag; });
    const bool measures = option != known.end() && !option->benches.empty();
    const bool devices = flag == "--simulate-gpus" || flag == "--split-gpu";
    const bool sources = flag == "--config" || flag == "--preset";
    if (!measures && !devices && !sources && flag != "--warm-up" && flag != "--repeat") continue;
    add(flag);
    if (value != "true") add(value);
  }
  for (const auto& [flag, value] : arguments.settings) {
    add(flag);
    add(value);
  }
  return text;
}

std::string text_as(const std::string& format, const BenchHeading& heading,
                    const BenchRecord& record, const Wishes& wishes,
                    const std::optional<BenchComparison>& comparison) {
  if (format == "csv") return bench_csv(heading, record);
  if (format == "md") {
    const std::string text = bench_markdown(heading, record);
    return comparison ? text + comparison_markdown(*wishes.old, *comparison) : text;
  }
  nlohmann::ordered_json document = bench_document(heading, record);
  if (comparison)
    document["comparison"] = comparison_document(*wishes.old, *comparison, wishes.tolerance);
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int measure(const Bench& bench, std::vector<BenchJob> jobs, const Arguments& arguments,
            Wishes wishes) {
  if (arguments.has("--compare")) {
    wishes.old = read_old_bench(arguments.value("--compare"));
    refuse_other_bench(*wishes.old, bench.name);
  }
  if (!wishes.out.empty()) check_may_write(wishes.out);
  configure_or_stop(device_request(jobs.front().arguments, jobs.front().config));
  const Strategy strategy = setup_gpu_strategy(false);
  for (BenchJob& job : jobs) {
    job.data_device = strategy.data_device;
    job.model_device = strategy.replicas.front();
  }
  const BenchHeading heading{.bench = bench.name,
                             .command = command_text(arguments),
                             .version = TANDEM_VERSION,
                             .warm_up = wishes.warm_up,
                             .repeat = wishes.repeat,
                             .origin = bench_origin()};
  if (wishes.old && wishes.old->machine != heading.origin.machine())
    log_warning("`{}` was measured on another machine: {}", wishes.old->file, wishes.old->machine);
  const BenchRecord record = run_all(bench, jobs, wishes);
  std::optional<BenchComparison> comparison;
  // What was measured is written down before a comparison can fail.
  const auto write = [&] {
    if (!wishes.out.empty())
      write_file_atomically(wishes.out,
                            text_as(wishes.out_format, heading, record, wishes, comparison));
  };
  write();
  if (wishes.old) {
    comparison = compare_bench(*wishes.old, bench.name, record, wishes.tolerance);
    write();
  }
  print(trim(text_as(wishes.format, heading, record, wishes, comparison)));
  if (!comparison) return 0;
  const std::vector<std::string> lines = complaints(*wishes.old, *comparison, wishes.tolerance);
  if (lines.empty()) return 0;
  complain(lines);
  return 1;
}

int run_bench(const Arguments& arguments) {
  if (arguments.has("--list")) {
    print(trim(bench_list()));
    return 0;
  }
  const Bench& bench = bench_named(arguments.rest.empty() ? "" : arguments.rest.front());
  refuse_foreign_options(bench, arguments);
  const Wishes wishes = wishes_of(arguments);
  Arguments given = arguments;
  given.rest.erase(given.rest.begin());
  if (arguments.has("--print-config")) {
    print(print_config(resolve_settings(given)));
    return 0;
  }
  std::vector<BenchJob> jobs = bench_jobs(bench, given);
  if (!arguments.has("--dry-run")) return measure(bench, std::move(jobs), arguments, wishes);
  for (const BenchJob& job : jobs)
    print(fmt::format("{}: {} warm-up, {} counted", in_words(bench, job), wishes.warm_up,
                      wishes.repeat));
  return 0;
}

}  // namespace

Command bench_command() {
  std::vector<Option> options;
  for (const BenchOption& option : bench_options()) options.push_back(option.option);
  return {.name = "bench",
          .summary = "figures of this machine, side by side with a peer",
          .rest = "data|step|train|synthesize|generate [key=value...]",
          .details =
              "Several values for a parameter, separated by commas, are several runs: every\n"
              "combination is measured.\n\n"
              "tandem bench data --data assets/demo --peer\n"
              "tandem bench data --data DIR --num-workers 1,4,16 batch_size=8,16 --format csv\n"
              "tandem bench step --data DIR --step-ms 2,5,20\n"
              "tandem bench synthesize --size normal --batches 16,64,256 --peer\n"
              "tandem bench train --size normal --batches 16,3 --ways --peer\n"
              "tandem bench generate --size small --batches 1,8 --repeat 5 --out today.json\n"
              "tandem bench generate --size small --batches 1,8 --compare today.json",
          .settings = read_by_bench,
          .chooses_devices = true,
          .options = options,
          .run = run_bench};
}

}  // namespace tandem
