// What a device can do at most, measured: a large product in the step's precision, and a copy that
// does not fit a cache. Shares of the limit are shares of these.
#pragma once

#include <string>

namespace tandem {

class LogicalDevice;

struct DeviceLimits {
  double flops = 0, bytes = 0;  // a second
};

// Takes a fraction of a second. `precision`: fp32, tf32, bf16 or fp16.
DeviceLimits measure_limits(LogicalDevice& device, const std::string& precision);

// The share of the limit that `flops` and `bytes` in `seconds` are: the larger of the two; 0 where
// neither is known.
double share_of_limit(const DeviceLimits& limits, double flops, double bytes, double seconds);

}  // namespace tandem
