// The memory lines of isolated devices (contract 002-9), and a warning when use only ever grows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem {

class LogicalDevice;

class MemoryWatch {
 public:
  struct Watched {
    LogicalDevice* device;
    std::string role;  // "Data" or "Model"
  };
  explicit MemoryWatch(std::vector<Watched> devices) : devices_(std::move(devices)) {}

  // Says `[Step 100] Data GPU 0: 5248/8192MB (64.1%)` for each device, and warns once about a leak.
  void report(int64_t step);

  // The line alone, for a device using `used` of `limit` bytes.
  static std::string line(int64_t step, const std::string& role, int index, uint64_t used,
                          uint64_t limit);

  // Feeds one reading; true when the last `readings_of_a_leak` each grew by more than a hundredth.
  static constexpr int readings_of_a_leak = 5;
  bool grows_without_end(const std::string& device, uint64_t used);

 private:
  struct Trend {
    uint64_t last = 0;
    int growing = 0;
    bool warned = false;
  };
  std::vector<Watched> devices_;
  std::map<std::string, Trend> trends_;
};

}  // namespace tandem
