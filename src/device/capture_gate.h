// While a thread captures a step on a GPU, no other thread of ours launches work there. Batches may
// be prepared on the very stream that is captured (data.optimize_cpu_gpu_overlap=false) and would
// become part of the step; and libraries that make plans on the way (cuFFT, cuDNN) are not asked to
// do so beside a capture.
//
// Who launches holds the gate shared, for as long as it launches and never while it waits for
// others; who captures holds it alone. One gate a GPU, whatever shares of it there are. Off CUDA
// nothing is captured and no gate is held.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace tandem {

class LogicalDevice;

std::shared_lock<std::shared_mutex> launching_on(const LogicalDevice& device);
std::unique_lock<std::shared_mutex> capturing_on(const LogicalDevice& device);

}  // namespace tandem
