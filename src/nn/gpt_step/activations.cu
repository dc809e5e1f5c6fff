// GELU and its backward pass, and sums over places.
#include <c10/cuda/CUDAException.h>

#include "nn/gpt_step/gelu.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256;
constexpr int lanes = 32;                 // eights of columns beside each other in a block
constexpr int walkers = threads / lanes;  // rows at a time
constexpr int tile_columns = 8 * lanes;

__global__ void __launch_bounds__(threads) gelu_forward(const bf16* in, bf16* out, int64_t count) {
  const int64_t at = 8 * (static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x);
  if (at >= count) return;
  Eight x = load_eight(in + at);
#pragma unroll
  for (int i = 0; i < 8; ++i) x.v[i] = gelu(x.v[i]);
  store_eight(out + at, x);
}

// The sums of a block's walkers in order, one thread a column.
__device__ void write_partial(const Eight& sum, float* partial, int columns) {
  __shared__ float shared[walkers][tile_columns];
  const int lane = threadIdx.x % lanes, walker = threadIdx.x / lanes;
  store_eight(&shared[walker][8 * lane], sum);
  __syncthreads();
  const int column = blockIdx.x * tile_columns + threadIdx.x;
  if (column >= columns) return;
  float all = 0;
#pragma unroll
  for (int w = 0; w < walkers; ++w) all += shared[w][threadIdx.x];
  partial[static_cast<int64_t>(blockIdx.y) * columns + column] = all;
}
static_assert(threads == tile_columns);

// Blocks (column tile, row part): row parts are gridDim.y.
__global__ void __launch_bounds__(threads)
    gelu_backward(const bf16* in, bf16* gradient, bf16* activated, float* partial, int places,
                  int columns) {
  const int column = blockIdx.x * tile_columns + 8 * (threadIdx.x % lanes);
  Eight sum{};
  if (column < columns) {
#pragma unroll 2
    for (int place = blockIdx.y * walkers + threadIdx.x / lanes; place < places;
         place += gridDim.y * walkers) {
      const int64_t at = static_cast<int64_t>(place) * columns + column;
      Eight x = load_eight(in + at), d = load_eight(gradient + at);
      gelu_slope(x, d);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum.v[i] += d.v[i];
      store_eight(activated + at, x);
      store_eight(gradient + at, d);
    }
  }
  write_partial(sum, partial, columns);
}

__global__ void __launch_bounds__(threads)
    column_sums(const bf16* in, float* partial, int rows, int columns, int64_t stride) {
  const int column = blockIdx.x * tile_columns + 8 * (threadIdx.x % lanes);
  Eight sum{};
  if (column < stride && column < columns) {
#pragma unroll 4
    for (int row = blockIdx.y * walkers + threadIdx.x / lanes; row < rows;
         row += gridDim.y * walkers) {
      const Eight x = load_eight(in + row * stride + column);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum.v[i] += x.v[i];
    }
  }
  write_partial(sum, partial, columns);
}

// 32 columns a block, 8 threads each over the parts; those eight are added in order.
__global__ void __launch_bounds__(threads) finish_sums(const SumJobs jobs) {
  __shared__ float shared[threads / 32][32];
  const SumJob& job = jobs.job[blockIdx.y];
  const int column = blockIdx.x * 32 + threadIdx.x % 32, part = threadIdx.x / 32;
  if (blockIdx.x * 32 >= job.columns) return;
  float sum = 0;
  if (column < job.columns) {
#pragma unroll 11
    for (int row = part; row < job.parts; row += threads / 32)
      sum += job.partial[row * job.stride + column];
  }
  shared[part][threadIdx.x % 32] = sum;
  __syncthreads();
  if (part != 0 || column >= job.columns) return;
#pragma unroll
  for (int w = 1; w < threads / 32; ++w) sum += shared[w][threadIdx.x];
  float* out = job.out + (job.spread ? column / 64 * job.spread + column % 64 : column);
  *out = jobs.overwrite ? sum : *out + sum;
}

dim3 tiles(int columns, int parts) {
  return dim3(static_cast<unsigned>((columns + tile_columns - 1) / tile_columns),
              static_cast<unsigned>(parts));
}

}  // namespace

void launch_gelu(const bf16* in, bf16* out, int64_t count, cudaStream_t stream) {
  const WorkNote note("tandem::gelu", 0, 4.0 * static_cast<double>(count));
  gelu_forward<<<static_cast<unsigned>((count / 8 + threads - 1) / threads), threads, 0, stream>>>(
      in, out, count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void launch_gelu_backward(const bf16* in, bf16* gradient, bf16* activated, float* partial,
                          int places, int columns, cudaStream_t stream) {
  const WorkNote note("tandem::gelu_backward", 0, 8.0 * places * columns);
  gelu_backward<<<tiles(columns, column_parts), threads, 0, stream>>>(in, gradient, activated,
                                                                      partial, places, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void launch_column_sums(const bf16* in, float* partial, int rows, int columns, int64_t stride,
                        cudaStream_t stream) {
  const WorkNote note("tandem::column_sums", 0, 2.0 * rows * columns);
  column_sums<<<tiles(columns, column_parts), threads, 0, stream>>>(in, partial, rows, columns,
                                                                    stride);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void launch_finish_sums(const SumJobs& jobs, cudaStream_t stream) {
  int columns = 0;
  for (int i = 0; i < jobs.count; ++i) columns = std::max(columns, jobs.job[i].columns);
  if (columns == 0) return;
  const dim3 grid(static_cast<unsigned>((columns + 31) / 32), static_cast<unsigned>(jobs.count));
  finish_sums<<<grid, threads, 0, stream>>>(jobs);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
