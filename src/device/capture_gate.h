// While a thread captures a step on a GPU, no other thread of ours launches work there. CUDA allows
// it in the thread-local mode of capture, but with libraries that make plans and take memory on the
// way (cuFFT, cuDNN) captured steps were seen to read memory that is not there.
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
