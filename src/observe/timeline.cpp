#include "observe/timeline.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <fstream>

#include "observe/run_events.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"

namespace tandem {

Timeline::Timeline(TimelineOptions options) : options_(std::move(options)) {
  std::error_code ignored;
  if (std::filesystem::exists(options_.path, ignored)) {
    kept_ = parse_timeline(read_file(options_.path));
    std::string lines;  // without one that a kill cut off
    for (const TimelineReading& reading : kept_) lines += to_json_line(reading) + "\n";
    write_file_atomically(options_.path, lines);
  }
  thread_ = std::thread([this] { work(); });
}

Timeline::~Timeline() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Timeline::work() {
  pthread_setname_np(pthread_self(), "timeline");
  const std::chrono::duration<double> interval(options_.interval);
  try {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, interval, [&] { return stopping_; })) return;
      }
      read_once();
      if (options_.each_time) options_.each_time();
    }
  } catch (const std::exception& error) {
    log_warning("the timeline of this run ends here: {}", explain(error).sentence);
  }
}

void Timeline::read_once() {
  TimelineReading reading{.time = seconds_since_1970(), .devices = options_.read_devices()};
  reading.queues = queue_readiness();
  const std::lock_guard lock(mutex_);
  reading.steps = steps_;
  latest_ = reading.devices;
  if (++passed_over_ < stride_) return;
  passed_over_ = 0;
  keep(std::move(reading));
}

std::vector<std::pair<std::string, double>> Timeline::queue_readiness() {
  const std::lock_guard lock(queues_mutex_);
  std::vector<std::pair<std::string, double>> ready;
  if (!read_queues_) return ready;
  const double passed = seconds_since(queues_read_);
  queues_read_ = Clock::now();
  for (const QueueReading& queue : read_queues_()) {
    const auto before = empty_before_.find(queue.name);
    if (before != empty_before_.end() && passed > 0) {
      const double empty = (queue.empty_time - before->second) / passed;
      ready.emplace_back(queue.name, std::clamp(1 - empty, 0.0, 1.0));
    }
    empty_before_[queue.name] = queue.empty_time;
  }
  return ready;
}

void Timeline::keep(TimelineReading reading) {
  const std::string line = to_json_line(reading) + "\n";
  kept_.push_back(std::move(reading));
  if (kept_.size() <= options_.most_lines) {
    std::ofstream file(options_.path, std::ios::app);
    file << line << std::flush;
    if (!file) throw Error(ErrorKind::io, fmt::format("cannot write `{}`", options_.path.string()));
    return;
  }
  std::string lines;
  size_t place = 0;
  std::erase_if(kept_, [&](const TimelineReading&) { return place++ % 2 == 1; });
  for (const TimelineReading& left : kept_) lines += to_json_line(left) + "\n";
  stride_ *= 2;
  write_file_atomically(options_.path, lines);
}

void Timeline::note_steps(bool follow) {
  const std::lock_guard lock(mutex_);
  steps_ = follow;
}

void Timeline::watch_queues(std::function<std::vector<QueueReading>()> read) {
  if (!read) note_steps(false);
  const std::lock_guard lock(queues_mutex_);
  read_queues_ = std::move(read);
  empty_before_.clear();
  queues_read_ = Clock::now();
}

std::vector<DeviceReading> Timeline::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::vector<DeviceSummary> Timeline::summary() const {
  const std::lock_guard lock(mutex_);
  return summarise(kept_);
}

}  // namespace tandem
