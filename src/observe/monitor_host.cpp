#include "observe/monitor_host.h"

#include <fstream>
#include <string>

namespace tandem {

HostState HostMonitor::read() {
  HostState host;
  std::ifstream ticks(proc_ / "stat");
  for (std::string word; ticks >> word;) {
    if (word == "cpu") {
      // user, nice, system, idle, iowait, irq, softirq, steal; guests are in the first two already.
      uint64_t all = 0, idle = 0, value = 0;
      for (int i = 0; i < 8 && ticks >> value; ++i) {
        all += value;
        if (i == 3 || i == 4) idle += value;
      }
      const uint64_t busy = all - idle;
      if (all_ > 0 && all > all_ && busy >= busy_)
        host.cpu = static_cast<double>(busy - busy_) / static_cast<double>(all - all_);
      all_ = all;
      busy_ = busy;
    } else if (word.starts_with("cpu")) {
      ++host.cores;
    }
    ticks.ignore(1 << 20, '\n');
  }
  std::ifstream memory(proc_ / "meminfo");
  uint64_t total = 0, available = 0, value = 0;  // KiB
  for (std::string key; memory >> key >> value; memory.ignore(1 << 10, '\n')) {
    if (key == "MemTotal:") total = value;
    if (key == "MemAvailable:") available = value;
  }
  host.total = total * 1024;
  host.used = total > available ? (total - available) * 1024 : 0;
  double load = 0;
  if (std::ifstream(proc_ / "loadavg") >> load) host.load = load;
  return host;
}

}  // namespace tandem
