// How busy the logical devices are and what they hold, read again and again beside the training.
//
//   a GPU              the driver's own figure (NVML), which is that of the whole card: the parts
//                      of a split GPU show the same one
//   a simulated GPU    share of the time since the last reading in which the threads that work for
//                      it (its queue's, and those with its scope open) had something to do
//   the CPU            this process's share of the cores it may use
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/nvml_reader.h"
#include "util/clock.h"

namespace tandem {

class LogicalDevice;

struct DeviceReading {
  std::string name;              // "/GPU:0"
  double utilisation = -1;       // 0 to 1; -1: not known
  uint64_t used = 0, limit = 0;  // bytes of memory; limit 0: none known
};

// The driver's figure of each GPU. NVML is held open: starting it takes longer than asking it.
class GpuDriverLoad {
 public:
  explicit GpuDriverLoad(const std::string& library);
  // 0 to 1; -1 for a GPU it does not know or has no figure for, such as a MIG instance.
  double utilisation(const std::string& uuid) const;

 private:
  NvmlReader nvml_;
  std::map<std::string, NvmlGpu> gpus_;  // by UUID
};

class DeviceLoad {
 public:
  // Devices live as long as the process.
  explicit DeviceLoad(std::vector<LogicalDevice*> devices);
  ~DeviceLoad();
  DeviceLoad(const DeviceLoad&) = delete;
  DeviceLoad& operator=(const DeviceLoad&) = delete;
  // One thread.
  std::vector<DeviceReading> read();

 private:
  struct Watched;
  std::vector<std::unique_ptr<Watched>> devices_;
  std::unique_ptr<GpuDriverLoad> driver_;
  Clock::time_point last_ = Clock::now();
  std::optional<uint64_t> observer_;  // LibTorch's handle of what notes the working threads
};

// All GPUs of the registry, or the CPU where there are none.
std::vector<LogicalDevice*> devices_to_watch();

}  // namespace tandem
