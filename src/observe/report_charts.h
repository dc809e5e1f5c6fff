// What the report draws: the curves of a run, thinned to what a screen can show.
#pragma once

#include <string>
#include <vector>

#include "observe/run_record.h"

namespace tandem {

struct ChartLine {
  std::string name;
  std::vector<double> x, y;  // NaN in y: the line is interrupted
  bool faint = false;        // drawn thin, behind the others
  bool dots = false;         // each point is marked
};

struct Chart {
  std::string title;
  std::string unit;        // of y, behind the figures
  std::string x = "step";  // or "minutes"
  bool from_zero = false;  // y begins at 0
  std::vector<ChartLine> lines;
};

// Losses first, then every other figure of the steps. None for curves of one point.
std::vector<Chart> metric_charts(const RunRecord& run);
// Utilisation and memory of each device, readiness of the queues, over the minutes of the run.
std::vector<Chart> timeline_charts(const RunRecord& run);

// At most 2 * `most` points of a line: of every stretch the lowest and the highest, so that no peak
// is lost.
ChartLine thinned(const ChartLine& line, size_t most = 600);
// A running mean over about a fortieth of the points.
std::vector<double> smoothed(const std::vector<double>& values);

// As JSON that may stand inside a <script> element.
std::string to_script_json(const std::vector<Chart>& charts);

}  // namespace tandem
