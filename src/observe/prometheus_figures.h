// What a run tells Prometheus: the newest of each figure, kept as the run reports them and given
// out as text whenever somebody asks. All functions from any thread; none waits for a reader, who
// copies the figures and writes them out afterwards.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "generate/music_jobs.h"
#include "observe/device_load.h"
#include "observe/prometheus_text.h"
#include "tandem/trainer.h"
#include "util/clock.h"

namespace tandem {

// One queue of the feed: its counters, and the share of the time between the last two readings in
// which it was not empty.
struct QueueFigure {
  QueueReading reading;
  std::optional<double> ready;
};

struct FigureValues {
  PrometheusLabels build, run;  // labels of tandem_build_info and tandem_run_info
  // Of a training.
  bool trains = false;
  int64_t first_step = 0, total_steps = 0, skipped = 0, checkpoints = 0;
  std::optional<StepReport> step, validation;
  double step_time = 0;                   // seconds since 1970
  std::optional<double> seconds_left;     // at the speed since it began
  std::map<std::string, int64_t> events;  // by kind
  std::vector<QueueFigure> queues;
  // Of `tandem generate`.
  std::optional<MusicJobProgress> clips;
  std::vector<std::string> clip_devices;  // names of MusicJobProgress::devices
  // Of both.
  std::vector<DeviceReading> devices;
  double process_seconds = 0, process_start = 0;  // CPU time; seconds since 1970
  uint64_t process_bytes = 0;                     // resident
};

// In a fixed order; what is not known has no sample.
std::vector<PrometheusMetric> metrics_of(const FigureValues& values);

class RunFigures {
 public:
  RunFigures(PrometheusLabels build, PrometheusLabels run);

  // A training begins in that folder, also a second one in the same process: counters go on.
  void start(const std::string& folder, int64_t first_step, int64_t total_steps);
  void take_step(const StepReport& report);
  void take_event(const std::string& kind);
  void take_checkpoint();
  void take_devices(const std::vector<DeviceReading>& readings);
  void take_clips(const MusicJobProgress& progress, const std::vector<std::string>& devices);
  // `read`, which also keeps here what it gives. Empty in, empty out.
  std::function<std::vector<QueueReading>()> watched(
      std::function<std::vector<QueueReading>()> read);

  std::string text() const;

 private:
  void take_queues(const std::vector<QueueReading>& readings);

  mutable std::mutex mutex_;
  FigureValues values_;
  Clock::time_point began_ = Clock::now(), queues_read_ = Clock::now();
};

}  // namespace tandem
