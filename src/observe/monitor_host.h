// How busy the machine's cores are and how full its memory, from the kernel's own counters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tandem {

struct HostState {
  int cores = 0;
  std::optional<double> cpu;     // share of all cores since the last reading, 0 to 1
  std::optional<double> load;    // tasks that run or wait, mean of the last minute
  uint64_t used = 0, total = 0;  // bytes of memory; total 0: not known
};

class HostMonitor {
 public:
  explicit HostMonitor(std::filesystem::path proc = "/proc") : proc_(std::move(proc)) {}
  // The first reading knows no share of the cores.
  HostState read();

 private:
  std::filesystem::path proc_;
  uint64_t busy_ = 0, all_ = 0;  // ticks of all cores
};

}  // namespace tandem
