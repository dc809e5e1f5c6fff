// Work captured as a CUDA graph that may take memory, from a pool of its own.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/cuda/CUDAGraph.h>

#include <functional>
#include <memory>

namespace tandem {

// On the current stream. Whoever calls it holds capturing_on() of the device; graphs of one pool
// never run at the same time. Throws what `work` threw.
std::unique_ptr<at::cuda::CUDAGraph> capture_work(c10::cuda::MempoolId_t pool,
                                                  const std::function<void()>& work);

}  // namespace tandem
#endif
