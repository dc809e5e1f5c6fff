#include "device/capture_work.h"

#ifdef TANDEM_WITH_CUDA
#include "util/log.h"

namespace tandem {

std::unique_ptr<at::cuda::CUDAGraph> capture_work(c10::cuda::MempoolId_t pool,
                                                  const std::function<void()>& work) {
  auto made = std::make_unique<at::cuda::CUDAGraph>();
  // Thread-local: other threads allocate meanwhile, which the global mode takes for an error.
  made->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  try {
    work();
  } catch (...) {
    try {
      made->capture_end();
    } catch (const std::exception& second) {
      log_debug("the capture ended badly as well: {}", second.what());
    }
    throw;
  }
  made->capture_end();
  return made;
}

}  // namespace tandem
#endif
