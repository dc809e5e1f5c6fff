// What the user reads. One logger for the process, set up once from the command line.
//
// Three ways to speak:
//   say(line)        a line of the product's interface (contract text): no time stamp, standard
//   output;
//                    lines that begin with a cross or a warning sign go to standard error, and so
//                    do the indented lines that continue them when said through `complain`
//   log_info/...     what happens, for people; level and time in the log file, plain on the
//   terminal print(text)      a result (a table, a JSON document): always on standard output, never
//   filtered
//
// Thread-safe. Before set-up everything works with defaults.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct LogOptions {
  int verbosity = 0;  // -1: warnings and errors only (-q); 0: normal; 1: debug (-v)
  bool json = false;  // --json-log: every line is one JSON object
  std::string file;   // --log-file: also there, with time stamps, all levels from debug up
  bool reserve_stdout =
      false;  // a JSON document goes to standard output: all else to standard error
};

void set_up_log(const LogOptions& options);

void say(std::string_view line);
// A complaint in the contract's words: every line to standard error.
void complain(const std::vector<std::string>& lines);
void print(std::string_view text);

enum class LogLevel { debug, info, warning, error };
void log_line(LogLevel level, std::string_view text);

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

// Whether colour and moving progress bars are welcome on standard error: a terminal, NO_COLOR unset
// (colour only), not --json-log, not -q.
bool terminal_wants_colour();
bool terminal_wants_progress();

// Clears a progress line another part is drawing, so that a log line does not land inside it.
// The progress bar registers how to clear and redraw itself; nullptr unregisters.
using ProgressHook = void (*)(bool clear);
void set_progress_hook(ProgressHook hook);

}  // namespace tandem
