#include "cli/tune_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "observe/tune_preset.h"
#include "observe/tune_reading.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

ErrorKind kind_of_code(int code) {
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::data, ErrorKind::io, ErrorKind::memory,
                               ErrorKind::numeric, ErrorKind::peer})
    if (exit_code(kind) == code) return kind;
  return ErrorKind::config;
}

}  // namespace

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

TuneSession::TuneSession(TuneRequest request, const Arguments& arguments)
    : request_(std::move(request)) {
  for (const char* flag : {"--simulate-gpus", "--split-gpu"})
    if (arguments.has(flag))
      device_words_.insert(device_words_.end(), {flag, arguments.value(flag)});
  std::string pattern = (fs::temp_directory_path() / "tandem-tune-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw Error(ErrorKind::io,
                "cannot make a folder in `" + fs::temp_directory_path().string() + "`");
  folder_ = pattern;
}

TuneSession::~TuneSession() { remove_tree(folder_); }

void TuneSession::set_base(const Resolved& resolved) {
  write_file_atomically(folder_ / "base.yaml", print_config(resolved));
}

ChildEnd TuneSession::start(const std::string& probe, const TuneSettings& settings,
                            double seconds) {
  // A sixtieth of the whole time, the same for all, so that they can be compared.
  const double length = request_.probe_seconds.value_or(std::clamp(request_.minutes, 0.2, 8.0));
  std::vector<std::string> words = {request_.program.empty() ? "/proc/self/exe" : request_.program,
                                    "tune",
                                    "--probe",
                                    probe,
                                    "--probe-seconds",
                                    fmt::format("{:.2f}", length),
                                    "--json",
                                    "--quiet",
                                    "--config",
                                    (folder_ / "base.yaml").string()};
  words.insert(words.end(), device_words_.begin(), device_words_.end());
  if (!request_.model.empty()) words.insert(words.end(), {"--model", request_.model});
  for (const auto& [key, value] : settings) words.push_back(key + "=" + value);
  const fs::path run = folder_ / "run";
  words.push_back("paths.checkpoint_dir=" + run.string());
  const ChildEnd end =
      run_limited_child(words, {.seconds = seconds, .host_bytes = host_memory_to_spare()});
  remove_tree(run);
  return end;
}

TunePlan TuneSession::plan() {
  const ChildEnd end = start(request_.generate ? "plan-generate" : "plan-train", {},
                             std::max(60.0, request_.minutes * 60));
  if (end.how == ChildEnd::How::stopped) throw_stopped();
  const nlohmann::json document = probe_document(end);
  if (end.how != ChildEnd::How::exited || end.code != 0 || !document.is_object()) {
    const std::string words = last_words_of(end);
    throw Error(
        kind_of_code(end.code),
        "nothing can be tuned: " +
            (words.empty() ? fmt::format("the program that makes the plan ended with {}", end.code)
                           : words));
  }
  TunePlan plan;
  plan.gpu = document.value("gpu", "");
  plan.kind = document.value("kind", "cpu");
  plan.limit_bytes = document.value("limit_bytes", 0.0);
  plan.capability = document.value("capability", 0.0);
  plan.fixed_bytes = document.value("fixed_bytes", 0.0);
  plan.bytes_a_clip = document.value("bytes_a_clip", 0.0);
  plan.batch = document.value("batch", int64_t{0});
  plan.clips = document.value("clips", int64_t{0});
  return plan;
}

void TuneSession::tell(const std::string& what, const TuneSettings& settings,
                       const TuneReading& reading) {
  const double mean = spent_ / done_;
  const double left = std::clamp(mean * (expected_ - done_), 0.0, std::max(0.0, seconds_left()));
  log_info("{} of about {}  {}, {}: {}  left {}", done_, std::max(done_, expected_), what,
           describe_change(settings, what == "guess" ? TuneSettings{} : task_.guess),
           describe_reading(reading, unit_), format_seconds(left));
}

TuneReading TuneSession::measure(const std::string& what, const TuneSettings& settings) {
  // The first may take most of the time, a later one three times what was usual.
  const double usual = done_ == 0 ? request_.minutes * 60 : std::max(20.0, 3 * spent_ / done_);
  const double allowed = std::max(5.0, std::min(usual, seconds_left()));
  const ChildEnd end = start(request_.generate ? "generate" : "train", settings, allowed);
  const TuneReading reading = reading_of(end);
  if (reading.fits()) unit_ = probe_document(end).value("unit", unit_);
  ++done_;
  spent_ += reading.seconds;
  tell(what, settings, reading);
  return reading;
}

TuneResult TuneSession::search(const TuneTask& task) {
  task_ = task;
  expected_ = expected_trials(task);
  return walk_settings(
      task,
      [this](const std::string& what, const TuneSettings& settings) {
        return measure(what, settings);
      },
      [this] { return seconds_left() <= 0; }, [this] { return seconds_left(); });
}

}  // namespace tandem
