// Starts a step in one kernel; what its blocks do is in whole_step_walk.cuh.
#include "nn/rows/whole_step.h"

#include "nn/rows/launch.cuh"
#include "nn/rows/whole_step_walk.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace whole {
namespace {

template <class H, bool music>
__global__ void __launch_bounds__(threads, 1) whole_step(const __grid_constant__ WholeStep call) {
  extern __shared__ __align__(128) unsigned char memory[];
  Step<H, music>(call, *reinterpret_cast<Near<H, music>*>(memory)).run();
}

template <class Kernel>
cudaLaunchConfig_t config_of(Kernel kernel, size_t shared, cudaLaunchAttribute (&attributes)[3],
                             cudaStream_t stream) {
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared)));
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = cluster;
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  // All blocks at once or none: two such kernels beside each other would otherwise each hold some
  // of the multiprocessors and wait for the rest.
  attributes[1].id = cudaLaunchAttributeCooperative;
  attributes[1].val.cooperative = 1;
  // It may start while the kernel before it runs, and fetches its first weights meanwhile.
  attributes[2].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[2].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 3;
  return config;
}

// By half and kind of model.
template <class Do>
auto with_kernel(RowHalf half, bool music, Do&& use) {
  const auto of = [&]<class H>(H) {
    return music ? use(whole_step<H, true>, sizeof(Near<H, true>))
                 : use(whole_step<H, false>, sizeof(Near<H, false>));
  };
  return half == RowHalf::fp16 ? of(__half{}) : of(__nv_bfloat16{});
}

bool all_fit_at_once() {
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) != 9 ||
      !device_attribute(cudaDevAttrCooperativeLaunch))
    return false;
  const int shared = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return with_kernel(RowHalf::fp16, true, [&](auto kernel, size_t bytes) {
    if (bytes > static_cast<size_t>(shared)) return false;
    cudaLaunchAttribute attributes[3] = {};
    const cudaLaunchConfig_t config = config_of(kernel, bytes, attributes, nullptr);
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    return clusters * cluster >= blocks;
  });
}

}  // namespace
}  // namespace whole

int64_t whole_step_words(int64_t layers) {
  return 2 * layers * static_cast<int64_t>(sizeof(whole::Words) / sizeof(uint32_t));
}

bool whole_step_runs(int rows, int64_t width, int64_t heads, int64_t inner) {
  if (rows > WholeStepSize::most_rows || width != WholeStepSize::width ||
      heads != WholeStepSize::heads || inner != WholeStepSize::inner)
    return false;
  thread_local int known_device = -1;
  thread_local bool runs = false;
  int device = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  if (device != known_device) runs = whole::all_fit_at_once(), known_device = device;
  return runs;
}

void launch_whole_step(const WholeStep& call, cudaStream_t stream) {
  const double wide = WholeStepSize::width,
               products = wide * (4 * wide + 2.0 * WholeStepSize::inner),
               text = call.reading > 0 ? 2 * wide * wide : 0;
  const WorkNote note("tandem::whole::whole_step",
                      call.layers * (2 * call.rows * products + 2 * call.reading * text +
                                     4 * call.positions_read * wide),
                      call.layers * (2 * (products + text) + 4 * call.positions_read * wide));
  whole::with_kernel(call.half, call.music, [&](auto kernel, size_t bytes) {
    cudaLaunchAttribute attributes[3] = {};
    const cudaLaunchConfig_t config = whole::config_of(kernel, bytes, attributes, stream);
    C10_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, call));
    return true;
  });
}

}  // namespace tandem
