// A terminal's second screen, drawn over and over: each picture goes out in one piece, every line
// over the one before it, so that nothing flickers. The terminal is given back as it was.
#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <vector>

#include "observe/monitor_reading.h"

namespace tandem {

// What to send for a picture of so many rows; lines that do not fit are left out.
std::string picture_bytes(const std::vector<MonitorLine>& lines, size_t rows, bool colour);

class MonitorTerminal {
 public:
  // Standard output must be a terminal; keys are read from standard input when that is one too.
  MonitorTerminal();
  ~MonitorTerminal();
  MonitorTerminal(const MonitorTerminal&) = delete;
  MonitorTerminal& operator=(const MonitorTerminal&) = delete;

  struct Size {
    size_t columns = 80, rows = 24;
  };
  static Size size();
  void draw(const std::vector<MonitorLine>& lines);
  // Sleeps so long, or until a key or a signal comes. True: q was pressed, or input has ended.
  bool wait(double seconds);

 private:
  std::optional<termios> before_;  // of standard input
  bool keys_ = false;
  bool colour_ = true;
};

}  // namespace tandem
