// Work on a stream, captured once as a CUDA graph and replayed: one launch instead of hundreds. The
// work must not allocate, and what it reads and writes must stay where it is.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <functional>

namespace tandem {

class CapturedGraph {
 public:
  CapturedGraph() = default;
  ~CapturedGraph() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  bool captured() const { return executable_ != nullptr; }

  void capture(c10::cuda::CUDAStream stream, const std::function<void()>& work) {
    // Thread-local: other threads allocate meanwhile, which the global mode takes for an error.
    C10_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph) cudaGraphDestroy(graph);
      throw;
    }
    C10_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    C10_CUDA_CHECK(made);
  }

  void replay(c10::cuda::CUDAStream stream) {
    C10_CUDA_CHECK(cudaGraphLaunch(executable_, stream));
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tandem
#endif
