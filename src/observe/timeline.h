// timeline.jsonl: how busy every device was and how ready the queues before them, over the time of
// a run. A thread reads them every half second beside the training:
//
//   {"time":1.79e9,"devices":{"/GPU:0":{"utilisation":0.97,"used":1024,"limit":2048}},
//    "queues":{"moved":1.0},"steps":true}
//
// `steps` is there while steps follow each other: not while devices are set up, and not behind the
// last step.
// A queue's figure is the share of the time since the last line in which it was not empty. When the
// file gets long every second line is dropped and lines come half as often, so that it never grows
// beyond `most_lines`. A run that goes on adds to what is there.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "observe/device_load.h"
#include "tandem/trainer.h"

namespace tandem {

struct TimelineReading {
  double time = 0;  // seconds since 1970
  std::vector<DeviceReading> devices;
  std::vector<std::pair<std::string, double>> queues;  // 0 to 1
  bool steps = false;
};

std::string to_json_line(const TimelineReading& reading);
// What is no reading, such as a line that was cut off, is passed over.
std::vector<TimelineReading> parse_timeline(const std::string& lines);

// Contract 001-13: whether a device was steadily busy, over the readings between steps where there
// are any; memory over all.
struct DeviceSummary {
  std::string name;
  size_t readings = 0;                                      // with a utilisation
  double mean = 0, deviation = 0, lowest = 0, highest = 0;  // of the utilisation, 0 to 1
  uint64_t peak_used = 0, limit = 0;                        // bytes
};
std::vector<DeviceSummary> summarise(const std::vector<TimelineReading>& readings);
// "/GPU:0: 93 % busy (deviation 4 %, lowest 71 %)", or its memory alone.
std::string to_string(const DeviceSummary& summary);

struct TimelineOptions {
  std::filesystem::path path;
  double interval = 0.5;  // seconds
  size_t most_lines = 4000;
  std::function<std::vector<DeviceReading>()> read_devices;
  std::function<void()> each_time = {};  // called after every reading, on the timeline's thread
};

class Timeline {
 public:
  // Starts the thread. A file that cannot be written ends it with a warning: a run does not fail
  // for it.
  explicit Timeline(TimelineOptions options);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // From now on; an empty function: no more, and no steps follow. When it returns, the one before
  // is not called again.
  void watch_queues(std::function<std::vector<QueueReading>()> read);
  // Whether steps follow each other from now on.
  void note_steps(bool follow);
  // Of the last reading; empty before the first.
  std::vector<DeviceReading> latest() const;
  std::vector<DeviceSummary> summary() const;

 private:
  void work();
  void read_once();
  std::vector<std::pair<std::string, double>> queue_readiness();
  void keep(TimelineReading reading);

  const TimelineOptions options_;
  mutable std::mutex mutex_;  // of what follows but the queues
  std::condition_variable changed_;
  bool stopping_ = false, steps_ = false;
  std::vector<DeviceReading> latest_;
  std::vector<TimelineReading> kept_;
  size_t stride_ = 1, passed_over_ = 0;

  std::mutex queues_mutex_;
  std::function<std::vector<QueueReading>()> read_queues_;
  std::map<std::string, double> empty_before_;  // seconds
  Clock::time_point queues_read_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tandem
