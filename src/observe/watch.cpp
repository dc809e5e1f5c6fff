#include "observe/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "observe/progress.h"
#include "observe/step_line.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr size_t steps_of_the_speed = 50;
constexpr size_t most_readings = 4000;

// One that was not finite is kept as null.
double loss_of(const MetricLine& line) {
  return line.value("loss").value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

GrowingFile::News GrowingFile::read() {
  News news;
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT) return news;
    throw Error(ErrorKind::io,
                fmt::format("cannot read `{}`: {}", path_.string(), std::strerror(errno)));
  }
  struct stat status {};
  fstat(file, &status);
  if (inode_ != 0 && (status.st_ino != inode_ || status.st_size < offset_)) {
    news.anew = true;
    offset_ = 0;
    rest_.clear();
  }
  inode_ = status.st_ino;
  char buffer[1 << 16];
  for (ssize_t got = 0; (got = ::pread(file, buffer, sizeof buffer, offset_)) > 0;) {
    offset_ += got;
    rest_.append(buffer, static_cast<size_t>(got));
  }
  ::close(file);
  size_t start = 0;
  for (size_t end = 0; (end = rest_.find('\n', start)) != std::string::npos; start = end + 1)
    news.lines.push_back(rest_.substr(start, end - start));
  rest_.erase(0, start);
  return news;
}

RunWatch::RunWatch(const std::filesystem::path& folder)
    : folder_(folder),
      metrics_(folder / "metrics.jsonl"),
      event_lines_(folder / "events.jsonl"),
      timeline_lines_(folder / "timeline.jsonl") {
  check_is_run(folder);
}

bool RunWatch::read() {
  const GrowingFile::News metrics = metrics_.read(), happened = event_lines_.read(),
                          readings = timeline_lines_.read();
  if (metrics.anew) {
    last_.reset();
    last_validation_.reset();
    best_validation_ = {};
    recent_.clear();
  }
  for (const std::string& line : metrics.lines)
    if (const auto parsed = parse_metric_line(line)) take(*parsed);
  if (happened.anew) events_.clear();
  for (const RunEvent& event : parse_run_events(join(happened.lines, "\n"))) {
    events_.push_back(event);
    if (!event.begins()) continue;
    total_steps_ = event.total_steps;
    began_ = event.time;
  }
  if (readings.anew) timeline_.clear();
  for (TimelineReading& reading : parse_timeline(join(readings.lines, "\n")))
    timeline_.push_back(std::move(reading));
  if (timeline_.size() > most_readings)
    timeline_.erase(timeline_.begin(), timeline_.end() - most_readings);
  return metrics.anew || !metrics.lines.empty() || !happened.lines.empty();
}

void RunWatch::take(const MetricLine& line) {
  if (line.validation) {
    last_validation_ = line;
    best_validation_.take(line);
    return;
  }
  last_ = line;
  if (line.time > 0) recent_.emplace_back(line.step, line.time);
  if (recent_.size() > steps_of_the_speed) recent_.pop_front();
}

std::optional<double> RunWatch::seconds_left() const {
  // The time between two starts is nobody's speed.
  const auto first =
      std::ranges::find_if(recent_, [&](const auto& at) { return at.second >= began_; });
  if (first == recent_.end() || total_steps_ <= step()) return std::nullopt;
  if (standing().kind != RunStanding::running) return std::nullopt;
  const auto& [first_step, first_time] = *first;
  const auto& [last_step, last_time] = recent_.back();
  if (last_step <= first_step || last_time <= first_time) return std::nullopt;
  return (last_time - first_time) / static_cast<double>(last_step - first_step) *
         static_cast<double>(total_steps_ - last_step);
}

StepReport RunWatch::report() const {
  StepReport report{.step = step(), .total_steps = total_steps_};
  const auto set = [&](double& into, const char* name) {
    into = last_->value(name).value_or(into);
  };
  report.loss = loss_of(*last_);
  set(report.gradient_norm, "gradient_norm");
  set(report.learning_rate, "learning_rate");
  set(report.tokens_per_second, "tokens_per_second");
  set(report.wait_share, "wait_share");
  set(report.audio_seconds_per_second, "audio_seconds_per_second");
  set(report.gpu_utilisation, "gpu_utilisation");
  report.memory_used = static_cast<uint64_t>(last_->value("memory_used").value_or(0));
  report.skipped = last_->skipped;
  return report;
}

std::string RunWatch::left() const {
  const auto seconds = seconds_left();
  return seconds ? "  left " + format_seconds(*seconds) : "";
}

std::string RunWatch::line() const {
  if (!last_) return "no step yet";
  const double validation = last_validation_ ? loss_of(*last_validation_) : 0;
  return fmt::format("step {}/{}  {}{}", step(), total_steps_,
                     step_figures(report(), last_validation_ ? &validation : nullptr), left());
}

std::string RunWatch::bar_line(size_t columns) const {
  if (!last_) return "no step yet";
  const double validation = last_validation_ ? loss_of(*last_validation_) : 0;
  const std::string bar = Progress::bar(step(), total_steps_, 24) + "  ", end = left();
  const size_t taken = bar.size() + end.size() + 1;
  return bar +
         step_figures(report(), last_validation_ ? &validation : nullptr,
                      columns > taken ? columns - taken : 0) +
         end;
}

std::string RunWatch::state() const {
  std::string text =
      fmt::format("run         {}\nstate       {}\n", folder_.string(), standing().words);
  text += fmt::format("last step   {}\n", line());
  if (const auto& best = best_validation_.line(); best && last_validation_) {
    text +=
        fmt::format("validation  {:.4f} after step {}, best {:.4f} after step {}\n",
                    loss_of(*last_validation_), last_validation_->step, loss_of(*best), best->step);
  }
  for (const DeviceSummary& device : summarise(timeline_))
    text += fmt::format("device      {}\n", to_string(device));
  return text;
}

}  // namespace tandem
