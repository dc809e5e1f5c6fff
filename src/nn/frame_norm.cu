// A block takes one group of one row: its channels side by side, its threads down the frames.
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "nn/frame_norm_launch.h"

namespace tandem {
namespace {

constexpr int most_threads = 512;
constexpr float epsilon = 1e-5f;

struct Shape {
  int frames, width, channels;  // of the tensor; channels of a group
};

// Sums of all threads, the same in each. In a fixed order.
__device__ float2 block_sum(float2 value, float2* shared) {
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = 512; half > 0; half /= 2) {
    if (threadIdx.x < half && threadIdx.x + half < blockDim.x) {
      shared[threadIdx.x].x += shared[threadIdx.x + half].x;
      shared[threadIdx.x].y += shared[threadIdx.x + half].y;
    }
    __syncthreads();
  }
  return shared[0];
}

template <class T>
__global__ void forward_kernel(const T* x, const int64_t* lengths, const float* weight,
                               const float* bias, T* out, float2* statistics, Shape s) {
  __shared__ float2 shared[most_threads];
  const int group = blockIdx.x, row = blockIdx.y;
  const int channel = threadIdx.x % s.channels, first = threadIdx.x / s.channels,
            step = blockDim.x / s.channels, real = static_cast<int>(lengths[row]);
  const int64_t at = static_cast<int64_t>(row) * s.frames * s.width + group * s.channels + channel;
  const float count = static_cast<float>(real) * s.channels;
  float2 sum{0, 0};
  for (int t = first; t < real; t += step)
    sum.x += static_cast<float>(x[at + static_cast<int64_t>(t) * s.width]);
  const float mean = block_sum(sum, shared).x / count;
  float2 square{0, 0};
  for (int t = first; t < real; t += step) {
    const float centred = static_cast<float>(x[at + static_cast<int64_t>(t) * s.width]) - mean;
    square.x += centred * centred;
  }
  const float rate = rsqrtf(block_sum(square, shared).x / count + epsilon);
  const float w = weight[group * s.channels + channel] * rate,
              b = bias[group * s.channels + channel];
  for (int t = first; t < s.frames; t += step) {
    const int64_t place = at + static_cast<int64_t>(t) * s.width;
    out[place] = t < real ? static_cast<T>((static_cast<float>(x[place]) - mean) * w + b)
                          : static_cast<T>(0.0f);
  }
  if (threadIdx.x == 0) statistics[row * gridDim.x + group] = {mean, rate};
}

template <class T>
__global__ void backward_kernel(const T* gradient, const T* x, const int64_t* lengths,
                                const float* weight, const float2* statistics, T* x_gradient,
                                float* scales, Shape s) {
  __shared__ float2 shared[most_threads];
  const int group = blockIdx.x, row = blockIdx.y;
  const int channel = threadIdx.x % s.channels, first = threadIdx.x / s.channels,
            step = blockDim.x / s.channels, real = static_cast<int>(lengths[row]);
  const int column = group * s.channels + channel;
  const int64_t at = static_cast<int64_t>(row) * s.frames * s.width + column;
  const float2 stats = statistics[row * gridDim.x + group];
  const float w = weight[column];
  float2 own{0, 0};  // of this channel: gradient times normed x, gradient
  for (int t = first; t < real; t += step) {
    const int64_t place = at + static_cast<int64_t>(t) * s.width;
    const float g = static_cast<float>(gradient[place]);
    own.x += g * (static_cast<float>(x[place]) - stats.x) * stats.y;
    own.y += g;
  }
  const float count = static_cast<float>(real) * s.channels;
  const float2 sums = block_sum({own.x * w, own.y * w}, shared);
  for (int t = first; t < s.frames; t += step) {
    const int64_t place = at + static_cast<int64_t>(t) * s.width;
    float value = 0;
    if (t < real) {
      const float normed = (static_cast<float>(x[place]) - stats.x) * stats.y;
      value = stats.y *
              (static_cast<float>(gradient[place]) * w - sums.y / count - normed * sums.x / count);
    }
    x_gradient[place] = static_cast<T>(value);
  }
  __syncthreads();
  shared[threadIdx.x] = own;
  __syncthreads();
  if (first > 0) return;
  for (int i = 1; i < step; ++i) {
    own.x += shared[i * s.channels + channel].x;
    own.y += shared[i * s.channels + channel].y;
  }
  const int64_t rows = gridDim.y;
  scales[static_cast<int64_t>(row) * s.width + column] = own.x;
  scales[(rows + row) * s.width + column] = own.y;
}

Shape shape_of(const at::Tensor& x, int64_t groups) {
  return {static_cast<int>(x.size(1)), static_cast<int>(x.size(2)),
          static_cast<int>(x.size(2) / groups)};
}
unsigned threads_for(const Shape& s) {
  return static_cast<unsigned>(most_threads / s.channels * s.channels);
}

}  // namespace

void frame_norm_forward_cuda(const at::Tensor& x, const at::Tensor& lengths,
                             const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out,
                             at::Tensor& statistics) {
  const int64_t groups = statistics.size(1);
  const Shape s = shape_of(x, groups);
  const dim3 grid(static_cast<unsigned>(groups), static_cast<unsigned>(x.size(0)));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "frame_norm", [&] {
    forward_kernel<scalar_t><<<grid, threads_for(s), 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.const_data_ptr<scalar_t>(), lengths.const_data_ptr<int64_t>(),
        weight.const_data_ptr<float>(), bias.const_data_ptr<float>(),
        out.mutable_data_ptr<scalar_t>(),
        reinterpret_cast<float2*>(statistics.mutable_data_ptr<float>()), s);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void frame_norm_backward_cuda(const at::Tensor& gradient, const at::Tensor& x,
                              const at::Tensor& lengths, const at::Tensor& weight,
                              const at::Tensor& statistics, at::Tensor& x_gradient,
                              at::Tensor& scales) {
  const int64_t groups = statistics.size(1);
  const Shape s = shape_of(x, groups);
  const dim3 grid(static_cast<unsigned>(groups), static_cast<unsigned>(x.size(0)));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "frame_norm", [&] {
    backward_kernel<scalar_t><<<grid, threads_for(s), 0, c10::cuda::getCurrentCUDAStream()>>>(
        gradient.const_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(),
        lengths.const_data_ptr<int64_t>(), weight.const_data_ptr<float>(),
        reinterpret_cast<const float2*>(statistics.const_data_ptr<float>()),
        x_gradient.mutable_data_ptr<scalar_t>(), scales.mutable_data_ptr<float>(), s);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
