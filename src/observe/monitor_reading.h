// One look of `tandem monitor` at the machine and at a run, and its forms: a JSON document, one
// plain line, and the lines of a terminal's screen.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "observe/monitor_gpus.h"
#include "observe/monitor_host.h"
#include "observe/monitor_run.h"

namespace tandem {

struct MonitorReading {
  double time = 0;  // seconds since 1970
  HostState host;
  std::vector<GpuState> gpus;
  std::optional<RunState> run;
};

// {"time", "host", "gpus", "run"}; what is not known is null.
std::string to_json(const MonitorReading& reading);

// "23:40:12  step 312/1000  loss 2.9947 …  /GPU:0 97% 13.0 GiB  …  cpu 12%  memory 3.1 GiB"
std::string to_plain_line(const MonitorReading& reading);

// Shares over time, by what they are of: "cpu" and the names of GPUs.
class MonitorHistory {
 public:
  void add(const MonitorReading& reading);
  const std::vector<double>& of(const std::string& name) const;

 private:
  std::map<std::string, std::vector<double>> values_;
};

struct MonitorLine {
  std::string text;  // without control characters
  enum Tone { plain, title, warning, bad } tone = plain;
};

// At most so many characters wide.
std::vector<MonitorLine> screen_lines(const MonitorReading& reading, const MonitorHistory& history,
                                      size_t columns);

// The last `width` values as bars of eight heights between `low` and `high`; equal: the lowest.
std::string sparkline(const std::vector<double>& values, size_t width, double low, double high);
// Between the lowest and the highest of the values that are shown.
std::string sparkline(const std::vector<double>& values, size_t width);

// The first `columns` characters of UTF-8 text; control characters, which could move the cursor or
// worse, become `?`.
std::string fit(const std::string& text, size_t columns);

}  // namespace tandem
