#include "cli/train_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "observe/report.h"
#include "observe/step_line.h"
#include "observe/watch.h"
#include "tandem/error.h"
#include "tandem/trainer.h"
#include "util/log.h"
#include "util/signals.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds between_looks{500};

// One line that moves on a terminal, else a line for each look that found something new.
class Shown {
 public:
  ~Shown() {
    if (drawn_) std::fputs("\n", stderr);
  }
  void update(const RunWatch& run) {
    if (!terminal_wants_progress()) {
      if (run.step() != step_) log_info("{}", run.line());
    } else {
      std::fputs(("\r\033[K" + run.bar_line(terminal_columns())).c_str(), stderr);
      std::fflush(stderr);
      drawn_ = true;
    }
    step_ = run.step();
  }

 private:
  bool drawn_ = false;
  int64_t step_ = -1;
};

void follow(RunWatch& run) {
  catch_stop_signals();
  Shown shown;
  shown.update(run);
  while (run.standing().kind == RunStanding::running && stop_requested() == StopRequest::none) {
    std::this_thread::sleep_for(between_looks);
    if (run.read()) shown.update(run);
  }
}

}  // namespace

std::vector<Option> watch_options() {
  return {{"--watch", "RUN", "follow the run in this folder instead of training"},
          {"--once", "", "with --watch: show how it stands and end"},
          {"--report", "", "with --watch: also write its report.html as it stands"}};
}

bool asks_to_watch(const Arguments& arguments) {
  if (arguments.has("--watch")) return true;
  for (const char* flag : {"--once", "--report"}) {
    if (arguments.has(flag)) {
      throw Error(ErrorKind::usage, fmt::format("{} goes with --watch, which was not given", flag))
          .hint("tandem train --watch RUN --once");
    }
  }
  return false;
}

// Of a training in several stages the one that was written into last.
std::filesystem::path run_within(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(folder / "events.jsonl", ignored)) return folder;
  fs::path newest = folder;
  fs::file_time_type when = fs::file_time_type::min();
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path events = entry.path() / "events.jsonl";
    if (!fs::exists(events, ignored) || fs::last_write_time(events, ignored) < when) continue;
    newest = entry.path();
    when = fs::last_write_time(events, ignored);
  }
  return newest;
}

bool goes_on_behind(const std::filesystem::path& folder, const RunWatch& run) {
  const std::vector<std::string>& stages = voice_stages();
  const auto stage = std::ranges::find(stages, folder.filename().string());
  return stage != stages.end() && *stage != stages.back() &&
         run.standing().kind == RunStanding::finished && run.is_process_there() &&
         stop_requested() == StopRequest::none;
}

// `folder` becomes the stage behind it once that is at work. False: it will not be, or Ctrl-C came.
bool wait_for_next(const std::filesystem::path& whole, std::filesystem::path& folder,
                   const RunWatch& run) {
  log_info("waiting for the stage behind {}", folder.filename().string());
  while (run.is_process_there() && stop_requested() == StopRequest::none) {
    std::this_thread::sleep_for(between_looks);
    const std::filesystem::path now = run_within(whole);
    if (now == folder) continue;
    folder = now;
    return true;
  }
  return false;
}

int run_watch(const Arguments& arguments) {
  if (!arguments.rest.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("`{}` has no place beside --watch", arguments.rest.front()))
        .hint("tandem train --watch RUN");
  }
  const std::filesystem::path whole = arguments.value("--watch");
  std::filesystem::path folder = run_within(whole);
  for (;;) {
    RunWatch run(folder);
    run.read();
    if (!arguments.has("--once")) {
      follow(run);
      run.read();
    }
    print(run.state());
    if (arguments.has("--report")) log_info("report: {}", write_report(folder).string());
    const bool more = !arguments.has("--once") && folder != whole && goes_on_behind(folder, run);
    if (!more || !wait_for_next(whole, folder, run)) return 0;
  }
}

}  // namespace tandem
