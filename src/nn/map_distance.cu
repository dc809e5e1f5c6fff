#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "nn/map_distance_launch.h"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256;

struct Row {
  uint32_t channels, places, numbers, count;  // count: places that are compared
  int64_t first;
  float share;  // of a number in the mean
  bool channels_last;
  __device__ Row(const int64_t* valid, const MapShape& s)
      : channels(static_cast<uint32_t>(s.channels)),
        places(static_cast<uint32_t>(s.places)),
        numbers(static_cast<uint32_t>(s.numbers)),
        first(static_cast<int64_t>(blockIdx.y) * s.numbers),
        channels_last(s.channels_last) {
    const int64_t reached = (valid[blockIdx.y] + s.samples_a_place - 1) / s.samples_a_place;
    count = static_cast<uint32_t>(min(max(reached, int64_t{1}), s.places));
    share =
        static_cast<float>(s.places) / (static_cast<float>(s.numbers) * static_cast<float>(count));
  }
  __device__ bool compared(uint32_t i) const {
    return (channels_last ? i / channels % places : i % places) < count;
  }
};

template <class T>
__global__ void __launch_bounds__(threads)
    forward(const T* a, const T* b, const int64_t* valid, MapShape shape, float* partial) {
  __shared__ float of_warp[threads / 32];
  const Row row(valid, shape);
  float sum = 0;
#pragma unroll 4
  for (uint32_t i = blockIdx.x * threads + threadIdx.x; i < row.numbers; i += gridDim.x * threads) {
    const float apart = static_cast<float>(a[row.first + i]) - static_cast<float>(b[row.first + i]);
    sum += row.compared(i) ? fabsf(apart) : 0.f;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < threads / 32; ++w) sum += of_warp[w];
  partial[blockIdx.y * gridDim.x + blockIdx.x] = sum * row.share;
}

template <class T>
__global__ void __launch_bounds__(threads)
    backward(const float* gradient, const T* a, const T* b, const int64_t* valid, MapShape shape,
             T* a_gradient) {
  const Row row(valid, shape);
  const float flow = gradient[blockIdx.y] * row.share;
#pragma unroll 4
  for (uint32_t i = blockIdx.x * threads + threadIdx.x; i < row.numbers; i += gridDim.x * threads) {
    const float apart = static_cast<float>(a[row.first + i]) - static_cast<float>(b[row.first + i]);
    const float sign = apart > 0 ? 1.f : apart < 0 ? -1.f : 0.f;
    a_gradient[row.first + i] = static_cast<T>(row.compared(i) ? sign * flow : 0.f);
  }
}

dim3 grid_for(const MapShape& shape) {
  return dim3(static_cast<unsigned>(map_parts), static_cast<unsigned>(shape.rows));
}

}  // namespace

void map_distance_cuda(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                       const MapShape& shape, const at::Tensor& partial) {
  const WorkNote note("tandem::map_distance", 0, 2.0 * static_cast<double>(a.nbytes()));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, a.scalar_type(), "map_distance", [&] {
    forward<scalar_t><<<grid_for(shape), threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        a.const_data_ptr<scalar_t>(), b.const_data_ptr<scalar_t>(), valid.const_data_ptr<int64_t>(),
        shape, partial.mutable_data_ptr<float>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void map_distance_backward_cuda(const at::Tensor& gradient, const at::Tensor& a,
                                const at::Tensor& b, const at::Tensor& valid, const MapShape& shape,
                                const at::Tensor& a_gradient) {
  const WorkNote note("tandem::map_distance_backward", 0, 3.0 * static_cast<double>(a.nbytes()));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, a.scalar_type(), "map_distance", [&] {
    backward<scalar_t><<<grid_for(shape), threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        gradient.const_data_ptr<float>(), a.const_data_ptr<scalar_t>(),
        b.const_data_ptr<scalar_t>(), valid.const_data_ptr<int64_t>(), shape,
        a_gradient.mutable_data_ptr<scalar_t>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
