#include "observe/monitor_terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "util/clock.h"

namespace tandem {
namespace {

// Second screen and no cursor; and back.
constexpr const char* enter = "\033[?1049h\033[?25l";
constexpr const char* leave = "\033[?25h\033[?1049l";
// A terminal that knows it shows nothing in between; the others pass over it.
constexpr const char* hold = "\033[?2026h";
constexpr const char* release = "\033[?2026l";

void send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t gone = ::write(STDOUT_FILENO, bytes.data() + sent, bytes.size() - sent);
    if (gone < 0 && errno != EINTR) return;  // the terminal is gone; a signal says so, too
    if (gone > 0) sent += static_cast<size_t>(gone);
  }
}

const char* colour_of(MonitorLine::Tone tone) {
  switch (tone) {
    case MonitorLine::title: return "\033[1m";
    case MonitorLine::warning: return "\033[33m";
    case MonitorLine::bad: return "\033[31m";
    default: return "";
  }
}

}  // namespace

std::string picture_bytes(const std::vector<MonitorLine>& lines, size_t rows, bool colour) {
  std::string bytes = std::string(hold) + "\033[H";
  for (size_t i = 0; i < lines.size() && i < rows; ++i) {
    if (i > 0) bytes += "\r\n";
    const std::string tone = colour ? colour_of(lines[i].tone) : "";
    bytes += tone + lines[i].text + (tone.empty() ? "" : "\033[0m") + "\033[K";
  }
  return bytes + "\033[J" + release;
}

MonitorTerminal::MonitorTerminal() {
  const char* no_colour = std::getenv("NO_COLOR");
  colour_ = no_colour == nullptr || *no_colour == '\0';
  termios now{};
  if (::isatty(STDIN_FILENO) && ::tcgetattr(STDIN_FILENO, &now) == 0) {
    before_ = now;
    keys_ = true;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C stays a signal
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  send(enter);
}

MonitorTerminal::~MonitorTerminal() {
  send(leave);
  if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

MonitorTerminal::Size MonitorTerminal::size() {
  winsize now{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) != 0 || now.ws_col == 0 || now.ws_row == 0)
    return {};
  return {now.ws_col, now.ws_row};
}

void MonitorTerminal::draw(const std::vector<MonitorLine>& lines) {
  send(picture_bytes(lines, size().rows, colour_));
}

bool MonitorTerminal::wait(double seconds) {
  pollfd input{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
  if (::poll(&input, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
  char key = 0;
  const ssize_t got = ::read(STDIN_FILENO, &key, 1);
  if (got == 0 || (input.revents & (POLLHUP | POLLERR)) != 0) return true;
  return got == 1 && (key == 'q' || key == 'Q');
}

}  // namespace tandem
