// What people see of a training run, while it runs and afterwards: the line of the step, and in the
// run's folder metrics.jsonl, events.jsonl, timeline.jsonl, tensorboard/, samples/ and, at the end,
// report.html; with observe.metrics_port also what Prometheus reads.
//
//   TrainView view(config);
//   TrainResult result = view.show([&](const TrainHooks& hooks) { return train(config, hooks); });
//   view.print_end();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/device_load.h"
#include "observe/event_file.h"
#include "observe/metrics_file.h"
#include "observe/metrics_server.h"
#include "observe/progress.h"
#include "observe/prometheus_figures.h"
#include "observe/run_events.h"
#include "observe/timeline.h"
#include "tandem/trainer.h"

namespace tandem {

class TrainView {
 public:
  explicit TrainView(const Config& config) : config_(config) {}
  TrainView(const TrainView&) = delete;
  TrainView& operator=(const TrainView&) = delete;

  // Runs the training under this view. However it ends, that is written down and the report is
  // made; what it throws goes on to the caller.
  TrainResult show(const std::function<TrainResult(const TrainHooks&)>& training);

  // Afterwards: how busy the devices were, and where the report is.
  void print_end() const;

 private:
  void serve_metrics();
  TrainHooks hooks();
  void start(const std::string& folder, int64_t first, int64_t total);
  void start_timeline();
  void step(StepReport report);
  void sample(const SampleReport& report);
  void event(int64_t step, const std::string& kind, const std::string& text);
  void plan(const std::vector<std::pair<std::string, std::string>>& rows);
  void add_scalars(const StepReport& report);
  void fill_from_devices(StepReport& report) const;
  void close(const std::string& kind, const std::string& text);

  const Config& config_;
  std::string folder_;  // empty: it has not started, or there was nothing to do
  std::vector<std::string> model_devices_;
  int64_t last_step_ = 0;
  std::optional<double> validation_;
  std::unique_ptr<RunFigures> figures_;    // of observe.metrics_port; read by the server
  std::unique_ptr<MetricsServer> server_;  // goes before them
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<RunEvents> events_;
  std::unique_ptr<EventFile> tensorboard_;
  std::unique_ptr<DeviceLoad> load_;
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<Progress> progress_;
  std::vector<DeviceSummary> devices_;  // once it has ended
  bool reported_ = false;
};

}  // namespace tandem
