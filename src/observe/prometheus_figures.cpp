#include "observe/prometheus_figures.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "observe/run_events.h"

namespace tandem {
namespace {

void read_process(FigureValues& values) {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  values.process_seconds =
      static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  values.process_bytes = resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

RunFigures::RunFigures(PrometheusLabels build, PrometheusLabels run) {
  values_.build = std::move(build);
  values_.run = std::move(run);
  values_.process_start = seconds_since_1970();
}

void RunFigures::start(const std::string& folder, int64_t first_step, int64_t total_steps) {
  const std::lock_guard lock(mutex_);
  std::erase_if(values_.run, [](const auto& label) { return label.first == "folder"; });
  values_.run.emplace_back("folder", folder);
  values_.trains = true;
  values_.first_step = first_step;
  values_.total_steps = total_steps;
  values_.step.reset();
  values_.validation.reset();
  values_.seconds_left.reset();
  began_ = Clock::now();
}

void RunFigures::take_step(const StepReport& report) {
  const double now = seconds_since_1970();
  const std::lock_guard lock(mutex_);
  if (report.validation) {
    values_.validation = report;
    return;
  }
  values_.step = report;
  values_.step_time = now;
  values_.skipped += report.skipped.empty() ? 0 : 1;
  const int64_t done = report.step - values_.first_step;
  if (done > 0)
    values_.seconds_left = seconds_since(began_) / static_cast<double>(done) *
                           static_cast<double>(values_.total_steps - report.step);
}

void RunFigures::take_event(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  ++values_.events[kind];
}

void RunFigures::take_checkpoint() {
  const std::lock_guard lock(mutex_);
  ++values_.checkpoints;
}

void RunFigures::take_devices(const std::vector<DeviceReading>& readings) {
  const std::lock_guard lock(mutex_);
  values_.devices = readings;
}

void RunFigures::take_clips(const MusicJobProgress& progress,
                            const std::vector<std::string>& devices) {
  const std::lock_guard lock(mutex_);
  values_.clips = progress;
  values_.clip_devices = devices;
}

std::function<std::vector<QueueReading>()> RunFigures::watched(
    std::function<std::vector<QueueReading>()> read) {
  const std::lock_guard lock(mutex_);
  values_.queues.clear();  // of another feed
  if (!read) return {};
  return [this, read = std::move(read)] {
    std::vector<QueueReading> readings = read();
    take_queues(readings);
    return readings;
  };
}

void RunFigures::take_queues(const std::vector<QueueReading>& readings) {
  const std::lock_guard lock(mutex_);
  const double passed = seconds_since(queues_read_);
  queues_read_ = Clock::now();
  std::vector<QueueFigure> figures;
  for (const QueueReading& reading : readings) {
    QueueFigure figure{.reading = reading};
    for (const QueueFigure& before : values_.queues) {
      if (before.reading.name != reading.name || passed <= 0) continue;
      const double empty = (reading.empty_time - before.reading.empty_time) / passed;
      figure.ready = std::clamp(1 - empty, 0.0, 1.0);
    }
    figures.push_back(std::move(figure));
  }
  values_.queues = std::move(figures);
}

std::string RunFigures::text() const {
  FigureValues values;
  {
    const std::lock_guard lock(mutex_);
    values = values_;
  }
  read_process(values);
  return prometheus_text(metrics_of(values));
}

}  // namespace tandem
