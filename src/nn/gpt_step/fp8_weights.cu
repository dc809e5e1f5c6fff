// Weights as 8-bit floats in both forms: turned, so that their columns become rows, and as they
// are. First the largest value of every column and row, then tile by tile through shared memory;
// the second reading comes from the cache.
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

// Where a weight's largest values stand: of its columns, behind them of its rows.
__device__ float* largest_of_weight(const Fp8Turns& turns, float* all, int which) {
  for (int i = 0; i < which; ++i) all += turns.turn[i].columns + turns.turn[i].rows;
  return all;
}
// Numbers that are not negative are in the order of their bits; the largest is the same in any
// order of blocks.
__device__ void raise(float* largest, float to) {
  atomicMax(reinterpret_cast<int*>(largest), __float_as_int(to));
}

// Blocks (column tile, row part, weight).
__global__ void __launch_bounds__(threads) find_largest(const Fp8Turns turns, float* all) {
  __shared__ float shared[walkers][8 * lanes];
  const Fp8Turn& job = turns.turn[blockIdx.z];
  const int first_row = blockIdx.y * searched_rows, tile = blockIdx.x * 8 * lanes;
  if (first_row >= job.rows || tile >= job.columns) return;
  float* of_columns = largest_of_weight(turns, all, static_cast<int>(blockIdx.z));
  float* of_rows = of_columns + job.columns;
  const int lane = threadIdx.x % lanes, walker = threadIdx.x / lanes, column = tile + 8 * lane;
  const bool mine = column < job.columns;
  Eight found{};
#pragma unroll 4
  for (int row = first_row + walker; row < min(first_row + searched_rows, job.rows);
       row += walkers) {
    const Eight x =
        mine ? load_eight(job.in + static_cast<int64_t>(row) * job.columns + column) : Eight{};
#pragma unroll
    for (int i = 0; i < 8; ++i) found.v[i] = fmaxf(found.v[i], fabsf(x.v[i]));
    if (!job.straight.data) continue;
    const float most = warp_largest(largest_of(x));
    if (lane == 0) raise(of_rows + row, most);
  }
  if (!job.turned.data) return;
  store_eight(&shared[walker][8 * lane], found);
  __syncthreads();
  if (tile + static_cast<int>(threadIdx.x) >= job.columns) return;
  float most = 0;
#pragma unroll
  for (int w = 0; w < walkers; ++w) most = fmaxf(most, shared[w][threadIdx.x]);
  raise(of_columns + tile + threadIdx.x, most);
}
static_assert(threads == 8 * lanes);

// Blocks (row tile, column tile, weight).
__global__ void __launch_bounds__(threads) turn_weights(const Fp8Turns turns, float* all) {
  constexpr int stride = tile_rows + 4;  // bytes; neighbours lie in different banks
  __shared__ uint8_t tile[tile_columns * stride];
  const Fp8Turn& job = turns.turn[blockIdx.z];
  const int first_row = blockIdx.x * tile_rows, first_column = blockIdx.y * tile_columns;
  if (first_row >= job.rows || first_column >= job.columns) return;
  const float* of_columns = largest_of_weight(turns, all, static_cast<int>(blockIdx.z));
  const float* of_rows = of_columns + job.columns + first_row;
  of_columns += first_column;
  const int eight = threadIdx.x % (tile_columns / 8), walker = threadIdx.x / (tile_columns / 8);
  Eight factor;
#pragma unroll
  for (int i = 0; i < 8; ++i) factor.v[i] = Fp8Scale(of_columns[8 * eight + i]).factor;
#pragma unroll
  for (int row = walker; row < tile_rows; row += threads / (tile_columns / 8)) {
    const int64_t at =
        static_cast<int64_t>(first_row + row) * job.columns + first_column + 8 * eight;
    const Eight x = load_eight(job.in + at);
    if (job.straight.data) store_fp8(job.straight.data + at, x, Fp8Scale(of_rows[row]).factor);
    if (!job.turned.data) continue;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      tile[(8 * eight + i) * stride + row] =
          __nv_cvt_float_to_fp8(x.v[i] * factor.v[i], __NV_SATFINITE, __NV_E4M3);
  }
  if (job.straight.data && blockIdx.y == 0 && threadIdx.x < tile_rows)
    job.straight.scales[first_row + threadIdx.x] = Fp8Scale(of_rows[threadIdx.x]).scale;
  if (!job.turned.data) return;
  __syncthreads();
  for (int at = threadIdx.x; at < tile_columns * tile_rows / 16; at += threads) {
    const int column = at / (tile_rows / 16), row = at % (tile_rows / 16) * 16;
    const auto* from = reinterpret_cast<const uint32_t*>(tile + column * stride + row);
    *reinterpret_cast<uint4*>(job.turned.data +
                              static_cast<int64_t>(first_column + column) * job.rows + first_row +
                              row) = {from[0], from[1], from[2], from[3]};
  }
  if (blockIdx.x == 0 && threadIdx.x < tile_columns)
    job.turned.scales[first_column + threadIdx.x] = Fp8Scale(of_columns[threadIdx.x]).scale;
}

unsigned parts(int count, int of) { return static_cast<unsigned>((count + of - 1) / of); }

}  // namespace

void launch_fp8_weights(const Fp8Turns& turns, float* largest, cudaStream_t stream) {
  double bytes = 0;
  int rows = 0, columns = 0;
  for (int i = 0; i < turns.count; ++i) {
    const Fp8Turn& job = turns.turn[i];
    const int forms = (job.turned.data ? 1 : 0) + (job.straight.data ? 1 : 0);
    bytes += (2.0 + forms) * job.rows * job.columns;
    rows = std::max(rows, job.rows);
    columns = std::max(columns, job.columns);
  }
  const WorkNote note("tandem::fp8_weights", 0, bytes);
  const auto each = static_cast<unsigned>(turns.count);
  find_largest<<<dim3(parts(columns, 8 * lanes), parts(rows, searched_rows), each), threads, 0,
                 stream>>>(turns, largest);
  turn_weights<<<dim3(parts(rows, tile_rows), parts(columns, tile_columns), each), threads, 0,
                 stream>>>(turns, largest);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
