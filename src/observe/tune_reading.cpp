#include "observe/tune_reading.h"

#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

// What the trainer says when it had to work on a batch in parts.
constexpr const char* halved = "ran out of memory: batches are worked on in";

std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n'))
    if (!trim(line).empty()) last = trim(line);
  return last;
}

}  // namespace

nlohmann::json probe_document(const ChildEnd& end) {
  return nlohmann::json::parse(last_line(end.output), nullptr, /*allow_exceptions=*/false);
}

std::string last_words_of(const ChildEnd& end) {
  const std::string words = last_line(end.errors), mark = "error: ";
  return words.starts_with(mark) ? words.substr(mark.size()) : words;
}

void throw_stopped() {
  const bool terminated = stop_requested() == StopRequest::terminated;
  throw Error(terminated ? ErrorKind::terminated : ErrorKind::interrupted,
              "stopped before anything was written");
}

TuneReading reading_of(const ChildEnd& end) {
  TuneReading reading{.seconds = end.seconds, .words = last_words_of(end)};
  switch (end.how) {
    case ChildEnd::How::stopped: throw_stopped();
    case ChildEnd::How::over_time:
      reading.outcome = ProbeOutcome::too_slow;
      reading.words = fmt::format("ended after {}", format_seconds(end.seconds));
      return reading;
    case ChildEnd::How::over_memory:
      reading.outcome = ProbeOutcome::out_of_memory;
      reading.words =
          fmt::format("ended when it held {} of the host's memory", format_bytes(end.host_peak));
      return reading;
    case ChildEnd::How::signalled:
      // The kernel's own way to get memory back.
      reading.outcome = end.signal == SIGKILL ? ProbeOutcome::out_of_memory : ProbeOutcome::failed;
      reading.words = fmt::format("killed by signal {}", end.signal);
      return reading;
    case ChildEnd::How::exited: break;
  }
  if (end.code == exit_code(ErrorKind::memory) || end.errors.find(halved) != std::string::npos) {
    reading.outcome = ProbeOutcome::out_of_memory;
    return reading;
  }
  const nlohmann::json document = probe_document(end);
  if (end.code != 0 || !document.is_object() || !document.contains("speed")) {
    if (reading.words.empty()) reading.words = fmt::format("ended with {}", end.code);
    return reading;
  }
  reading.outcome = ProbeOutcome::fits;
  reading.words.clear();
  reading.speed = document.value("speed", 0.0);
  reading.deviation = document.value("deviation", 0.0);
  reading.peak_bytes = document.value("peak_bytes", 0.0);
  reading.limit_bytes = document.value("limit_bytes", 0.0);
  reading.wait_share = document.value("wait_share", 0.0);
  reading.clips = document.value("clips", int64_t{0});
  reading.steps = document.value("steps", int64_t{0});
  reading.how = document.value("how", "");
  return reading;
}

}  // namespace tandem
