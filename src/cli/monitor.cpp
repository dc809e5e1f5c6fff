#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "cli/session.h"
#include "observe/device_load.h"
#include "observe/monitor_reading.h"
#include "observe/monitor_terminal.h"
#include "observe/run_events.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr double shortest_interval = 0.1, longest_interval = 3600;  // seconds
// Between the two readings of the counters that `--once` needs.
constexpr std::chrono::milliseconds between_readings{200};

// Everything there is to look at: the run, the machine's GPUs or simulated ones, the host.
class Watched {
 public:
  explicit Watched(const Arguments& arguments) {
    if (!arguments.rest.empty())
      run_ = std::make_unique<RunMonitor>(newest_run(arguments.rest.front()));
    const DeviceRequest request = device_request(arguments);
    if (!request.simulate_gpus) {
      gpus_ = std::make_unique<GpuMonitor>();
      return;
    }
    configure_or_stop(request);
    simulated_ = std::make_unique<DeviceLoad>(devices_to_watch());
  }

  MonitorReading read() {
    MonitorReading reading{.time = seconds_since_1970(), .host = host_.read()};
    if (gpus_) reading.gpus = gpus_->read();
    if (simulated_)
      for (const DeviceReading& device : simulated_->read())
        if (device.name.starts_with("/GPU:")) reading.gpus.push_back(state_of(device));
    if (run_) reading.run = run_->read();
    return reading;
  }

 private:
  std::unique_ptr<RunMonitor> run_;
  std::unique_ptr<GpuMonitor> gpus_;
  std::unique_ptr<DeviceLoad> simulated_;
  HostMonitor host_;
};

bool goes_on(const MonitorReading& reading) {
  const bool over = reading.run && reading.run->standing.kind != RunStanding::running;
  return !over && stop_requested() == StopRequest::none;
}

std::string screen_text(const MonitorReading& reading, const MonitorHistory& history,
                        size_t columns) {
  std::vector<std::string> lines;
  for (const MonitorLine& line : screen_lines(reading, history, columns))
    if (line.tone != MonitorLine::title) lines.push_back(line.text);
  return join(lines, "\n");
}

void show_on_terminal(Watched& watched, double interval) {
  MonitorHistory history;
  MonitorReading reading;
  {
    MonitorTerminal terminal;
    do {
      reading = watched.read();
      history.add(reading);
      terminal.draw(screen_lines(reading, history, MonitorTerminal::size().columns));
    } while (goes_on(reading) && !terminal.wait(interval));
  }
  // The second screen is gone; what it showed last stays.
  print(screen_text(reading, history, MonitorTerminal::size().columns));
}

void show_as_lines(Watched& watched, double interval) {
  while (true) {
    const MonitorReading reading = watched.read();
    print(to_plain_line(reading));
    std::fflush(stdout);
    if (!goes_on(reading)) {
      if (reading.run) print("run " + fit(reading.run->standing.words, 1000));
      return;
    }
    for (double slept = 0; slept < interval && stop_requested() == StopRequest::none; slept += 0.1)
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(0.1, interval)));
  }
}

double interval_of(const Arguments& arguments) {
  const std::string text = arguments.value("--interval", "1");
  const auto seconds = parse_double(text);
  if (!seconds || !(*seconds >= shortest_interval && *seconds <= longest_interval))
    throw Error(ErrorKind::usage, fmt::format("--interval is `{}`; expected seconds from {} to {}",
                                              text, shortest_interval, longest_interval));
  return *seconds;
}

int run_monitor(const Arguments& arguments) {
  const double interval = interval_of(arguments);
  if (arguments.rest.size() > 1)
    throw Error(ErrorKind::usage, fmt::format("`{}` is one run too many", arguments.rest[1]))
        .hint("tandem monitor RUN");
  const bool json = arguments.has("--json");
  Watched watched(arguments);
  if (json || arguments.has("--once")) {
    watched.read();
    std::this_thread::sleep_for(between_readings);
    const MonitorReading reading = watched.read();
    print(json ? to_json(reading) : screen_text(reading, {}, 1000));
    return 0;
  }
  catch_stop_signals();
  const char* kind = std::getenv("TERM");
  const bool can_draw = isatty(STDOUT_FILENO) && kind && std::string(kind) != "dumb";
  can_draw ? show_on_terminal(watched, interval) : show_as_lines(watched, interval);
  return 0;
}

}  // namespace

Command monitor_command() {
  return {
      .name = "monitor",
      .summary = "watch GPUs, host and a run as they work",
      .rest = "[RUN]",
      .details =
          "Every GPU of the machine (load, memory, power, clocks, what holds them down, PCIe), "
          "the\n"
          "host, and the run in that folder: step, loss, speed, time left, devices, queues. Ends "
          "on\n"
          "q, on Ctrl-C, and when the run ends. Where output is no terminal, a line each time.\n"
          "Of a folder of runs the newest is taken. No GPU memory is used.\n\n"
          "  tandem monitor\n"
          "  tandem monitor runs/2026-11-15-120000\n"
          "  tandem monitor runs --once --json",
      .settings = 0,
      .chooses_devices = false,
      .options = {{"--once", "", "look once and end"},
                  {"--json", "", "look once, print one JSON document and end"},
                  {"--interval", "S", "seconds between looks (1)"},
                  {"--simulate-gpus", "N",
                   "N simulated GPUs instead of the machine's (also TANDEM_SIMULATE_GPUS)"}},
      .run = run_monitor};
}

}  // namespace tandem
