#include "observe/diagnose/thread_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace tandem {
namespace {

double clock_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Held open a thread long: opening it costs more than a short task.
class Schedule {
 public:
  Schedule() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~Schedule() {
    if (file_ >= 0) close(file_);
  }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  double in_line() const {
    std::array<char, 96> text{};  // "on core, in line (nanoseconds), times"
    if (file_ < 0 || pread(file_, text.data(), text.size() - 1, 0) <= 0) return 0;
    char* rest = nullptr;
    std::strtoull(text.data(), &rest, 10);
    return 1e-9 * static_cast<double>(std::strtoull(rest, nullptr, 10));
  }

 private:
  int file_;
};

}  // namespace

SpentTime thread_time() {
  thread_local const Schedule schedule;
  return {.wall = clock_seconds(CLOCK_MONOTONIC),
          .on_core = clock_seconds(CLOCK_THREAD_CPUTIME_ID),
          .in_line = schedule.in_line()};
}

SpentTime threads_time(const std::string& prefix) {
  SpentTime sum{.wall = clock_seconds(CLOCK_MONOTONIC)};
  std::error_code ended;  // threads come and go
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ended)) {
    std::string name;
    if (!std::getline(std::ifstream(entry.path() / "comm"), name) || !name.starts_with(prefix))
      continue;
    double on_core = 0, in_line = 0;  // nanoseconds
    if (!(std::ifstream(entry.path() / "schedstat") >> on_core >> in_line)) continue;
    sum.on_core += 1e-9 * on_core;
    sum.in_line += 1e-9 * in_line;
  }
  return sum;
}

double machine_core_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  // Ticks: user, nice, system, idle, waiting for disks, interrupts (two kinds), taken by the host.
  std::array<double, 8> ticks{};
  if (!(file >> name) || name != "cpu") return -1;
  for (double& one : ticks)
    if (!(file >> one)) return -1;
  const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double process_core_seconds() { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace tandem
