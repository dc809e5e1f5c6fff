// How a run stands, read again and again from its folder alone: of `tandem train` metrics.jsonl,
// events.jsonl and timeline.jsonl, of `tandem generate` its manifests and timelines.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "observe/watch.h"

namespace tandem {

// A logical device of the run, from its timeline.
struct RunDevice {
  DeviceReading now;
  std::string hardware;         // empty: not said
  std::vector<double> history;  // utilisations, oldest first
};

struct RunState {
  std::string folder;
  std::string work;  // "train" or "generate"
  RunStanding standing;
  // Of a training.
  int64_t step = 0, total_steps = 0;
  std::optional<MetricLine> last, validation;
  std::vector<double> losses, speeds;  // of the last steps, oldest first; speeds in tok/s
  int64_t skipped = 0;                 // steps
  std::string happened;                // the newest sentence of its events
  // Of `tandem generate`; planned 0: an older run, which does not say.
  int64_t clips = 0, failed = 0, planned_clips = 0;
  // Of both.
  std::optional<double> seconds_left;
  std::vector<RunDevice> devices;
  std::vector<std::pair<std::string, double>> queues;  // share of the time not empty, 0 to 1
};

class RunMonitor {
 public:
  // Throws Error(config) when the folder holds no run.
  explicit RunMonitor(const std::filesystem::path& folder);
  // Reads what is new. Throws Error(io).
  const RunState& read();

 private:
  void read_metrics();
  void read_events();
  void read_timelines();
  void read_clips();
  void judge_generation();
  std::optional<double> seconds_of_clips() const;
  std::optional<double> seconds_left() const;
  GrowingFile& file(const std::string& name);

  std::filesystem::path folder_;
  RunState state_;
  std::map<std::string, GrowingFile> files_;
  std::deque<MetricLine> recent_;
  std::vector<RunEvent> events_;
  double began_ = 0, last_reading_ = 0, reading_gap_ = 0.5;  // seconds
  std::map<std::string, RunDevice> devices_;
  std::set<std::string> made_, broken_;  // clips, by file
  double started_ = 0;                   // of a generation, seconds since 1970
  std::vector<double> clip_times_;       // when clips were written
};

// The folder itself when it holds a run, else the one inside it that was written to last, such as
// the newest of `runs`. Throws Error(config) when there is none.
std::filesystem::path newest_run(const std::filesystem::path& folder);

// "running", "finished", "stopped", "failed" or "killed".
const char* to_string(RunStanding::Kind kind);

}  // namespace tandem
