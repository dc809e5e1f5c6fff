#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

#include "nn/step_verdict_launch.h"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256;

// Over a block, in an order that is always the same; whole in thread 0.
__device__ double sum_of_block(double value) {
  __shared__ double of_warp[threads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < threads / 32; ++i) value += of_warp[i];
  return value;
}

__device__ float square_of_pair(uint32_t bits) {
  const float first = first_of_pair(bits), second = second_of_pair(bits);
  return first * first + second * second;
}

// 16 bytes at a time: four numbers, or eight of a half.
template <bool half>
__global__ void __launch_bounds__(threads)
    squares(const uint4* gradient, int64_t groups, double* partial) {
  float sum = 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * threads;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x; i < groups;
       i += step) {
    const uint4 bits = gradient[i];
    if constexpr (half) {
      sum += (square_of_pair(bits.x) + square_of_pair(bits.y)) +
             (square_of_pair(bits.z) + square_of_pair(bits.w));
    } else {
      const float a = from_bits(bits.x), b = from_bits(bits.y), c = from_bits(bits.z),
                  d = from_bits(bits.w);
      sum += (a * a + b * b) + (c * c + d * d);
    }
  }
  const double whole = sum_of_block(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = whole;
}

// One block. The median by counting: each norm's place in order is how many stand before it.
__global__ void __launch_bounds__(threads)
    decide(const double* partial, int parts, VerdictNumbersAt at, VerdictPlaces memory,
           VerdictNumbers rule) {
  __shared__ float median;
  const int64_t count = *memory.count, middle = middle_of(count, rule.window);
  for (int64_t i = threadIdx.x; i < rule.window; i += threads) {
    const float mine = memory.norms[i];
    int64_t before = 0;
    for (int64_t j = 0; j < rule.window; ++j) {
      const float other = memory.norms[j];
      if (other < mine || (other == mine && j < i)) ++before;
    }
    if (before == middle) median = mine;
  }
  double sum = 0;
  for (int i = threadIdx.x; i < parts; i += threads) sum += partial[i];
  sum = sum_of_block(sum);  // behind its barrier the median is known
  if (threadIdx.x != 0) return;
  const float norm = static_cast<float>(sqrt(sum)) / *at.divisor;
  const bool good = judge_cell(norm, limit_of(median, count, rule), memory, rule);
  write_values(norm, good, *at.learning_rate, *at.divisor, memory, rule, at.values, at.outcome);
}

}  // namespace

void decide_step_cuda(const std::vector<at::Tensor>& gradients, const VerdictNumbersAt& at,
                      const VerdictPlaces& memory, const VerdictNumbers& rule,
                      const at::Tensor& partial) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  auto* next = partial.mutable_data_ptr<double>();
  int parts = 0;
  for (const at::Tensor& gradient : gradients) {
    if (gradient.numel() == 0) continue;
    const WorkNote note("tandem::squares", 0, static_cast<double>(gradient.nbytes()));
    const int64_t groups = static_cast<int64_t>(gradient.nbytes() / sizeof(uint4));
    const int blocks =
        static_cast<int>(std::min(squares_parts, (groups + 4 * threads - 1) / (4 * threads)));
    const auto kernel = gradient.scalar_type() == at::kBFloat16 ? squares<true> : squares<false>;
    kernel<<<blocks, threads, 0, stream>>>(static_cast<const uint4*>(gradient.const_data_ptr()),
                                           groups, next + parts);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    parts += blocks;
  }
  decide<<<1, threads, 0, stream>>>(partial.const_data_ptr<double>(), parts, at, memory, rule);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
