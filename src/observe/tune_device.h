// What a measurement took of its devices' memory.
#pragma once

#include <string>
#include <vector>

namespace tandem {

class LogicalDevice;

struct DeviceFill {
  std::string name;        // "/GPU:0"
  double peak_bytes = 0;   // on a GPU with the free blocks that LibTorch keeps
  double limit_bytes = 0;  // what others had not taken when the devices were chosen; 0: no limit
};

double memory_limit_of(LogicalDevice& device);
// The device with the largest share of its memory taken; where none has a limit, with the most.
DeviceFill fullest_device(const std::vector<LogicalDevice*>& devices);

}  // namespace tandem
