// Kernels of one step depend on each other in a row. Each is launched so that it may start while
// the one before it ends: it fetches its weights, then waits (await_predecessor) before it reads
// what that one wrote.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime.h>

namespace tandem {

inline int device_attribute(cudaDeviceAttr which) {  // of the current device
  int device = 0, value = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

// Kernels in the dialect of compute capability 9.0 (sm_90a) run there alone.
inline bool is_hopper() {
  return device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         device_attribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

__device__ inline void await_predecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void release_successor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Asks the second-level cache for what the next product will read, so that memory is busy while
// this one waits for its input.
__device__ inline void fetch_for_successor(const void* weight, int64_t bytes) {
  const int64_t line = 128,
                thread = (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x +
                         threadIdx.x;
  const int64_t all = static_cast<int64_t>(gridDim.x) * gridDim.y * blockDim.x;
  for (int64_t at = thread * line; at < bytes; at += all * line)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const char*>(weight) + at));
}

// `cluster`: blocks that share their memory, for compute capability 9.0; 1 everywhere: none.
template <class Arguments>
void launch_in_turn(void (*kernel)(Arguments), dim3 grid, dim3 block, size_t shared,
                    cudaStream_t stream, const Arguments& arguments, dim3 cluster = dim3(1, 1, 1)) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = cluster.x;
  attributes[1].val.clusterDim.y = cluster.y;
  attributes[1].val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = cluster.x * cluster.y * cluster.z > 1 ? 2 : 1;
  C10_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments));
}

}  // namespace tandem
