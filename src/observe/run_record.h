// What a run's folder tells about the run: read from its files, whether it is finished, still going
// or was killed. Files that are missing and lines that were cut off are passed over.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "observe/run_events.h"
#include "observe/timeline.h"

namespace tandem {

// One figure over the steps.
struct Curve {
  std::string name;         // "loss", "learning_rate", or the name of a term
  bool validation = false;  // else training
  bool term = false;        // one of StepReport::terms
  std::vector<int64_t> steps;
  std::vector<double> values;  // only finite ones
};

// One line of metrics.jsonl.
struct MetricLine {
  int64_t step = 0;
  bool validation = false;
  bool best = false;  // the run keeps its state as the best
  double time = 0;    // seconds since 1970; 0: not said
  std::string skipped;
  std::vector<std::pair<std::string, double>> values, terms;  // finite ones
  std::optional<double> value(const std::string& name) const;
};
std::optional<MetricLine> parse_metric_line(const std::string& line);

// The validation whose state a run keeps as `best`: the last it said so of. A run of an earlier
// version did not: then the lowest.
class BestValidation {
 public:
  void take(const MetricLine& line);
  const std::optional<MetricLine>& line() const { return line_; }

 private:
  std::optional<MetricLine> line_;
};

struct RunRecord {
  std::filesystem::path folder;
  std::string settings;  // config.yaml
  std::vector<Curve> curves;
  BestValidation best;
  std::vector<RunEvent> events;
  std::vector<TimelineReading> timeline;
  int64_t last_step = 0, total_steps = 0;
  double first_time = 0, last_time = 0;  // of the steps; 0: not known

  const Curve* curve(const std::string& name, bool validation = false) const;
};

// Throws Error(config) when the folder is no run's.
RunRecord read_run(const std::filesystem::path& folder);

// Throws Error(config) unless there is such a folder and it holds a run.
void check_is_run(const std::filesystem::path& folder);

// How a run stands, from its events and, on the machine that trains, its process.
struct RunStanding {
  enum Kind { running, finished, stopped, failed, gone /* killed: it never said its end */ };
  Kind kind = running;
  std::string words;  // "running (process 7 on a)", "stopped: interrupted after step 7; …"
};
RunStanding standing_of(const std::vector<RunEvent>& events);
// Whether the process that began it last is there, or on a machine that cannot be asked.
bool is_process_there(const std::vector<RunEvent>& events);

}  // namespace tandem
