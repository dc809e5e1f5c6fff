// Rows of activations and weights as 8-bit floats.
#include <c10/cuda/CUDAException.h>

#include <algorithm>

#include "nn/gpt_step/fp8.cuh"
#include "nn/gpt_step/gelu.cuh"
#include "nn/rows/launch.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int row_threads = 128;                                 // of a row that is only converted
constexpr int most_eights = 4 * widest_fp8 / (8 * row_threads);  // of one of its threads
constexpr int wide_threads = 4 * widest_fp8 / 8;                 // one eight a thread

__global__ void __launch_bounds__(row_threads) fp8_rows(const Fp8Jobs jobs) {
  __shared__ float shared[2 * row_threads / 32];
  const Fp8Job& job = jobs.job[blockIdx.y];
  int turn = 0;
  for (int row = blockIdx.x; row < job.rows; row += gridDim.x, ++turn) {
    const int64_t first = static_cast<int64_t>(row) * job.columns;
    PackedEight x[most_eights];
    float largest = 0;
#pragma unroll
    for (int j = 0; j < most_eights; ++j) {
      const int column = 8 * (threadIdx.x + j * row_threads);
      if (column >= job.columns) break;
      x[j] = load_packed(job.in + first + column);
      largest = fmaxf(largest, largest_of(unpack(x[j])));
    }
    const Fp8Scale scale(block_largest(largest, shared, turn));
#pragma unroll
    for (int j = 0; j < most_eights; ++j) {
      const int column = 8 * (threadIdx.x + j * row_threads);
      if (column >= job.columns) break;
      store_fp8(job.out.data + first + column, unpack(x[j]), scale.factor);
    }
    if (threadIdx.x == 0) job.out.scales[row] = scale.scale;
  }
}

__global__ void __launch_bounds__(wide_threads, 2)
    gelu_fp8(const bf16* in, const Fp8Rows out, int places, int columns) {
  __shared__ float shared[2 * wide_threads / 32];
  const int column = 8 * threadIdx.x, step = gridDim.x;
  const bool mine = column < columns;
  const auto load = [&](int place) {
    return mine && place < places ? load_packed(in + static_cast<int64_t>(place) * columns + column)
                                  : PackedEight{0, 0, 0, 0};
  };
  PackedEight next = load(blockIdx.x);
  int turn = 0;
  for (int place = blockIdx.x; place < places; place += step, ++turn) {
    Eight x = unpack(next);
    next = load(place + step);
#pragma unroll
    for (int i = 0; i < 8; ++i) x.v[i] = gelu(x.v[i]);
    const Fp8Scale scale(block_largest(largest_of(x), shared, turn));
    if (mine) store_fp8(out.data + static_cast<int64_t>(place) * columns + column, x, scale.factor);
    if (threadIdx.x == 0) out.scales[place] = scale.scale;
  }
}

__global__ void __launch_bounds__(wide_threads, 2)
    gelu_backward_fp8(const bf16* in, bf16* gradient, bf16* activated, const Fp8Rows out,
                      float* partial, int places, int columns) {
  __shared__ float shared[2 * wide_threads / 32];
  const int column = 8 * threadIdx.x, step = gridDim.x;
  const bool mine = column < columns;
  const auto load = [&](const bf16* from, int place) {
    return mine && place < places
               ? load_packed(from + static_cast<int64_t>(place) * columns + column)
               : PackedEight{0, 0, 0, 0};
  };
  PackedEight next_x = load(in, blockIdx.x), next_d = load(gradient, blockIdx.x);
  Eight sum{};
  int turn = 0;
  for (int place = blockIdx.x; place < places; place += step, ++turn) {
    Eight x = unpack(next_x), d = unpack(next_d);
    next_x = load(in, place + step);
    next_d = load(gradient, place + step);
    gelu_slope(x, d);
    const int64_t at = static_cast<int64_t>(place) * columns + column;
    if (mine) {
      store_eight(activated + at, x);
      store_eight(gradient + at, d);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.v[i] += d.v[i];
    const Fp8Scale scale(block_largest(largest_of(d), shared, turn));
    if (mine) store_fp8(out.data + at, d, scale.factor);
    if (threadIdx.x == 0) out.scales[place] = scale.scale;
  }
  if (mine) store_eight(partial + static_cast<int64_t>(blockIdx.x) * columns + column, sum);
}

// Whole warps that hold a row of `columns`, an eight a thread.
int threads_for(int columns) { return (columns / 8 + 31) / 32 * 32; }

}  // namespace

bool fp8_runs() { return is_hopper(); }

void launch_fp8_rows(const Fp8Jobs& jobs, cudaStream_t stream) {
  double count = 0;
  int rows = 1;
  for (int i = 0; i < jobs.count; ++i) {
    count += static_cast<double>(jobs.job[i].rows) * jobs.job[i].columns;
    rows = std::max(rows, jobs.job[i].rows);
  }
  const WorkNote note("tandem::fp8_rows", 0, 3 * count);
  const dim3 grid(static_cast<unsigned>(std::min(rows, 2112)), static_cast<unsigned>(jobs.count));
  fp8_rows<<<grid, row_threads, 0, stream>>>(jobs);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void launch_gelu_fp8(const bf16* in, const Fp8Rows& out, int places, int columns,
                     cudaStream_t stream) {
  const WorkNote note("tandem::gelu", 0, 3.0 * places * columns);
  gelu_fp8<<<std::min(places, 528), threads_for(columns), 0, stream>>>(in, out, places, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void launch_gelu_backward_fp8(const bf16* in, bf16* gradient, bf16* activated, const Fp8Rows& out,
                              float* partial, int places, int columns, cudaStream_t stream) {
  const WorkNote note("tandem::gelu_backward", 0, 9.0 * places * columns);
  gelu_backward_fp8<<<gelu_fp8_parts, threads_for(columns), 0, stream>>>(
      in, gradient, activated, out, partial, places, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
