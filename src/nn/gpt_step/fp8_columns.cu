// Weights as 8-bit floats, turned: their columns become rows. First the largest value of every
// column, then tile by tile through shared memory; the second reading comes from the cache.
#include <c10/cuda/CUDAException.h>

#include <algorithm>

#include "nn/gpt_step/fp8.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256;
constexpr int lanes = 32,
              walkers = threads / lanes;  // of the search: 256 columns, 8 rows at a time
constexpr int searched_rows = 128;        // of one block
constexpr int tile_rows = 128, tile_columns = 64;

// Blocks (column tile, row part, job).
__global__ void __launch_bounds__(threads) column_largest(const Fp8Jobs jobs, float* all_largest) {
  __shared__ float shared[walkers][8 * lanes];
  const Fp8Job& job = jobs.job[blockIdx.z];
  const int first_row = blockIdx.y * searched_rows, tile = blockIdx.x * 8 * lanes;
  if (first_row >= job.rows || tile >= job.columns) return;
  float* largest = all_largest;
  for (int i = 0; i < static_cast<int>(blockIdx.z); ++i) largest += jobs.job[i].columns;
  const int lane = threadIdx.x % lanes, walker = threadIdx.x / lanes, column = tile + 8 * lane;
  Eight found{};
  if (column < job.columns) {
#pragma unroll 4
    for (int row = first_row + walker; row < min(first_row + searched_rows, job.rows);
         row += walkers) {
      const Eight x = load_eight(job.in + static_cast<int64_t>(row) * job.columns + column);
#pragma unroll
      for (int i = 0; i < 8; ++i) found.v[i] = fmaxf(found.v[i], fabsf(x.v[i]));
    }
  }
  store_eight(&shared[walker][8 * lane], found);
  __syncthreads();
  if (tile + static_cast<int>(threadIdx.x) >= job.columns) return;
  float most = 0;
#pragma unroll
  for (int w = 0; w < walkers; ++w) most = fmaxf(most, shared[w][threadIdx.x]);
  // Numbers that are not negative are in the order of their bits; the largest is the same in any
  // order of blocks.
  atomicMax(reinterpret_cast<int*>(largest + tile + threadIdx.x), __float_as_int(most));
}
static_assert(threads == 8 * lanes);

// Blocks (row tile, column tile, job).
__global__ void __launch_bounds__(threads) turn_columns(const Fp8Jobs jobs, const float* all) {
  constexpr int stride = tile_rows + 4;  // bytes; neighbours lie in different banks
  __shared__ uint8_t tile[tile_columns * stride];
  const Fp8Job& job = jobs.job[blockIdx.z];
  const int first_row = blockIdx.x * tile_rows, first_column = blockIdx.y * tile_columns;
  if (first_row >= job.rows || first_column >= job.columns) return;
  const float* largest = all;
  for (int i = 0; i < static_cast<int>(blockIdx.z); ++i) largest += jobs.job[i].columns;
  largest += first_column;
  const int eight = threadIdx.x % (tile_columns / 8), walker = threadIdx.x / (tile_columns / 8);
  Eight factor;
#pragma unroll
  for (int i = 0; i < 8; ++i) factor.v[i] = Fp8Scale(largest[8 * eight + i]).factor;
#pragma unroll
  for (int row = walker; row < tile_rows; row += threads / (tile_columns / 8)) {
    const Eight x = load_eight(job.in + static_cast<int64_t>(first_row + row) * job.columns +
                               first_column + 8 * eight);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      tile[(8 * eight + i) * stride + row] =
          __nv_cvt_float_to_fp8(x.v[i] * factor.v[i], __NV_SATFINITE, __NV_E4M3);
  }
  __syncthreads();
  for (int at = threadIdx.x; at < tile_columns * tile_rows / 16; at += threads) {
    const int column = at / (tile_rows / 16), row = at % (tile_rows / 16) * 16;
    const auto* from = reinterpret_cast<const uint32_t*>(tile + column * stride + row);
    *reinterpret_cast<uint4*>(job.out.data +
                              static_cast<int64_t>(first_column + column) * job.rows + first_row +
                              row) = {from[0], from[1], from[2], from[3]};
  }
  if (blockIdx.x == 0 && threadIdx.x < tile_columns)
    job.out.scales[first_column + threadIdx.x] = Fp8Scale(largest[threadIdx.x]).scale;
}

unsigned parts(int count, int of) { return static_cast<unsigned>((count + of - 1) / of); }

}  // namespace

void launch_fp8_columns(const Fp8Jobs& jobs, float* largest, cudaStream_t stream) {
  double count = 0;
  int rows = 0, columns = 0;
  for (int i = 0; i < jobs.count; ++i) {
    count += static_cast<double>(jobs.job[i].rows) * jobs.job[i].columns;
    rows = std::max(rows, jobs.job[i].rows);
    columns = std::max(columns, jobs.job[i].columns);
  }
  const WorkNote note("tandem::fp8_columns", 0, 3 * count);
  const auto each = static_cast<unsigned>(jobs.count);
  column_largest<<<dim3(parts(columns, 8 * lanes), parts(rows, searched_rows), each), threads, 0,
                   stream>>>(jobs, largest);
  turn_columns<<<dim3(parts(rows, tile_rows), parts(columns, tile_columns), each), threads, 0,
                 stream>>>(jobs, largest);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
