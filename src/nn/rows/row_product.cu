// Limited by memory at few rows (every weight is read once) and by tensor cores at many. Eight
// warps share a tile of the result; each takes every eighth block of 32 of the inner dimension, and
// their eight sums are added in order. That is the same for all tile sizes, so rows come out the
// same.
#include <algorithm>

#include "nn/rows/launch.cuh"
#include "nn/rows/pair_place.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int warps = 8, threads = 32 * warps;

// Few packed rows to shared memory, tile after tile, only lanes that hold one of the `real` rows. A
// thread asks for `batch` pieces before it stores any: one way to the cache and back.
template <int batch>
__device__ void bring_rows_near(const uint4* far, int tiles, int real, uint4* near) {
  const int shift = real == 1 ? 2 : real == 2 ? 3 : real <= 4 ? 4 : 5;  // of lanes, rounded up
  for (int first = threadIdx.x; first < tiles << shift; first += batch * threads) {
    uint4 values[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const int i = first + j * threads, lane = i & ((1 << shift) - 1);
      if (i < tiles << shift && lane < 4 * real) values[j] = far[(i >> shift) * 32 + lane];
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const int i = first + j * threads, lane = i & ((1 << shift) - 1);
      if (i < tiles << shift && lane < 4 * real) near[(i >> shift) * 32 + lane] = values[j];
    }
  }
  __syncthreads();
}

// A block makes 16 * row_tiles rows by 8 * column_tiles columns; `ahead` blocks of 32 are fetched
// before they are used; `resident` blocks fit on a multiprocessor at least.
template <class H, int row_tiles, int column_tiles, int ahead, int norm_quads, int resident,
          bool rows_near>
__global__ void __launch_bounds__(threads, resident) row_product(const RowProduct call) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int blocks = call.inner / inner_block;  // of the inner dimension
  const int first_column_tile = blockIdx.x * column_tiles, first_row_tile = blockIdx.y * row_tiles;
  const int all_column_tiles = (call.columns + 7) / 8;
  const int all_row_tiles = (call.rows + row_block - 1) / row_block;

  const auto* weight = static_cast<const uint4*>(call.weight);
  uint4 b[ahead][column_tiles];
  const auto fetch = [&](int block, uint4(&into)[column_tiles]) {
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
      const int tile = min(first_column_tile + n, all_column_tiles - 1);
      into[n] = __ldg(weight + (static_cast<int64_t>(tile) * blocks + block) * 32 + lane);
    }
  };
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    if (warp + warps * i < blocks) fetch(warp + warps * i, b[i]);
  }
  BlockRow<norm_quads == 0 ? 1 : norm_quads> scale, shift;
  if constexpr (norm_quads > 0) {
    scale.load(call.norm.weight, call.norm_width);
    shift.load(call.norm.bias, call.norm_width);
  }
  constexpr int width = 8 * column_tiles, height = 16 * row_tiles;
  constexpr bool one_pair = height * width / 2 <= threads;  // at most one a thread
  const auto place_of = [&](int pair) {
    PairPlace place;
    place.find(call, first_row_tile * 16 + pair / (width / 2),
               first_column_tile * 8 + pair % (width / 2) * 2);
    return place;
  };
  PairPlace mine;
  if (one_pair && threadIdx.x < height * width / 2) mine = place_of(threadIdx.x);
  fetch_for_successor(call.next_weight, call.next_bytes);
  release_successor();
  await_predecessor();
  if (one_pair) mine.read(call);

  H* normed = reinterpret_cast<H*>(shared);
  if constexpr (norm_quads > 0) {
    // Rows beyond the real ones stay whatever they are: no row reaches another.
    auto* scratch = reinterpret_cast<float*>(shared + sizeof(H) * row_block * call.inner);
    constexpr int most = 2;  // rows at once; more do not fit the registers
    for (int first = 0; first < call.rows; first += most) {
      const int count = min(call.rows - first, most);
      BlockRow<norm_quads> values[most];
#pragma unroll
      for (int r = 0; r < most; ++r) {
        if (r < count)
          values[r].load(call.norm_input + static_cast<int64_t>(first + r) * call.norm_width,
                         call.norm_width);
      }
      BlockRow<norm_quads>::template normalise_all<most>(values, count, scale, shift,
                                                         call.norm_width, scratch + 16 * first);
#pragma unroll
      for (int r = 0; r < most; ++r) {
        if (r < count) values[r].template pack<H>(normed, first + r, call.inner);
      }
    }
    __syncthreads();
  }
  auto* near = reinterpret_cast<uint4*>(shared);
  if constexpr (rows_near && norm_quads == 0) {
    bring_rows_near<(ahead > 4 ? 8 : 4)>(
        static_cast<const uint4*>(call.packed_rows) +
            static_cast<int64_t>(first_row_tile) * (call.inner / 16) * 32,
        call.inner / 16, min(call.rows - first_row_tile * row_block, 8), near);
  }
  const uint4* rows = rows_near ? near : static_cast<const uint4*>(call.packed_rows);

  // The rows come from the cache, so they are asked for less early than the weights.
  constexpr int rows_ahead = ahead < 4 ? ahead : 4;
  uint4 a[rows_ahead][row_tiles][2];
  const auto fetch_rows = [&](int block, uint4(&into)[row_tiles][2]) {
#pragma unroll
    for (int m = 0; m < row_tiles; ++m) {
      const int tile = rows_near ? 0 : min(first_row_tile + m, all_row_tiles - 1);
      into[m][0] = into[m][1] = {0, 0, 0, 0};
      if (lane / 4 >= call.rows - (rows_near ? first_row_tile : tile) * row_block)
        continue;  // no real row in this lane
      const int64_t at = (static_cast<int64_t>(tile) * (call.inner / 16) + block * 2) * 32 + lane;
      into[m][0] = rows[at];
      into[m][1] = rows[at + 32];
    }
  };
#pragma unroll
  for (int i = 0; i < rows_ahead; ++i) {
    if (!rows_near && warp + warps * i < blocks) fetch_rows(warp + warps * i, a[i]);
  }
  float sums[row_tiles][column_tiles][4] = {};
  for (int start = warp; start < blocks; start += warps * ahead) {
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int block = start + warps * i;
      if (block < blocks) {
        const int later = block + warps * ahead;
        if (rows_near) fetch_rows(block, a[i % rows_ahead]);
        uint4 x[row_tiles][2], w[column_tiles];
#pragma unroll
        for (int m = 0; m < row_tiles; ++m) {
          x[m][0] = a[i % rows_ahead][m][0];
          x[m][1] = a[i % rows_ahead][m][1];
        }
#pragma unroll
        for (int n = 0; n < column_tiles; ++n) w[n] = b[i][n];
        if (later < blocks) fetch(later, b[i]);
        const int later_rows = block + warps * rows_ahead;
        if (!rows_near && later_rows < blocks) fetch_rows(later_rows, a[i % rows_ahead]);
#pragma unroll
        for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
          for (int n = 0; n < column_tiles; ++n) {
            multiply_tile<H>(sums[m][n], x[m][0], w[n].x, w[n].y);
            multiply_tile<H>(sums[m][n], x[m][1], w[n].z, w[n].w);
          }
        }
      }
    }
  }

  auto* partial = reinterpret_cast<float*>(shared);  // [warps, height, width]
  if constexpr (rows_near) __syncthreads();          // the rows have been read
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
      float* tile = partial + (warp * height + m * 16 + lane / 4) * width + n * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(tile) = {sums[m][n][0], sums[m][n][1]};
      *reinterpret_cast<float2*>(tile + 8 * width) = {sums[m][n][2], sums[m][n][3]};
    }
  }
  __syncthreads();
  for (int pair = threadIdx.x; pair < height * width / 2; pair += threads) {
    const int row = pair / (width / 2), column = pair % (width / 2) * 2;
    float2 y = {0, 0};
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const float2 part =
          *reinterpret_cast<const float2*>(partial + (w * height + row) * width + column);
      y.x += part.x;
      y.y += part.y;
    }
    if constexpr (!one_pair) {
      mine = place_of(pair);
      mine.read(call);
    }
    mine.template put<H>(call, y);
  }
}

template <class H, int row_tiles, int column_tiles, int ahead, int norm_quads, int resident,
          bool rows_near>
void launch_tiles(const RowProduct& call, cudaStream_t stream) {
  const size_t sums = sizeof(float) * warps * row_tiles * 16 * column_tiles * 8;
  const size_t normed =
      rows_near ? sizeof(H) * row_block * call.inner + sizeof(float) * 16 * call.rows : 0;
  const size_t shared = std::max(sums, normed);
  const auto kernel =
      row_product<H, row_tiles, column_tiles, ahead, norm_quads, resident, rows_near>;
  if (shared > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  }
  const dim3 grid((call.columns + 8 * column_tiles - 1) / (8 * column_tiles),
                  (call.rows + 16 * row_tiles - 1) / (16 * row_tiles));
  launch_in_turn(kernel, grid, dim3(threads), shared, stream, call);
}

size_t shared_memory_of_a_block() {
  return static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

// Blocks of the whole product with that tile.
int blocks_of(const RowProduct& call, int row_tiles, int column_tiles) {
  return (call.columns + 8 * column_tiles - 1) / (8 * column_tiles) *
         ((call.rows + 16 * row_tiles - 1) / (16 * row_tiles));
}

template <class H>
void launch_half(const RowProduct& call, cudaStream_t stream) {
  constexpr int enough_blocks = 256;  // two on each multiprocessor of the largest GPUs
  const size_t room = shared_memory_of_a_block();
  const bool near_fits = sizeof(H) * row_block * call.inner + 1024 <= room;
  const bool large_fits = sizeof(float) * warps * 64 * 64 <= room;
  if (call.norm_input) {
    call.inner <= 1024 ? launch_tiles<H, 1, 2, 4, 1, 2, true>(call, stream)
                       : launch_tiles<H, 1, 2, 4, 2, 2, true>(call, stream);
  } else if (call.rows <= 16 && near_fits) {
    call.inner <= 1024 ? launch_tiles<H, 1, 1, 4, 0, 4, true>(call, stream)
                       : launch_tiles<H, 1, 1, 16, 0, 2, true>(call, stream);
  } else if (call.rows <= 16) {
    launch_tiles<H, 1, 1, 8, 0, 2, false>(call, stream);
  } else if (call.rows <= 32) {
    launch_tiles<H, 2, 2, 2, 0, 2, false>(call, stream);
  } else if (is_hopper() && blocks_of(call, 4, 4) >= enough_blocks) {
    launch_hopper_rows(call, stream);
  } else if (large_fits && blocks_of(call, 4, 8) >= enough_blocks) {
    launch_tiles<H, 4, 8, 1, 0, 1, false>(call, stream);
  } else if (blocks_of(call, 4, 4) >= enough_blocks) {
    launch_tiles<H, 4, 4, 1, 0, 1, false>(call, stream);
  } else if (blocks_of(call, 2, 4) >= enough_blocks) {
    launch_tiles<H, 2, 4, 1, 0, 2, false>(call, stream);
  } else {
    launch_tiles<H, 2, 2, 2, 0, 2, false>(call, stream);
  }
}

}  // namespace

bool half_kernels_run() { return device_attribute(cudaDevAttrComputeCapabilityMajor) >= 8; }

void launch_row_product(const RowProduct& call, cudaStream_t stream) {
  const double rows = call.rows, inner = call.inner, columns = call.columns;
  const double written = call.output == RowOutput::add     ? 8
                         : call.output == RowOutput::store ? 4
                         : call.out ? 8.0 / 3  // queries; keys, values in half
                                    : 2;
  const double read = call.norm_input ? 4.0 * rows * call.norm_width : 2 * rows * inner;
  const WorkNote note("tandem::row_product", 2 * rows * inner * columns,
                      2 * inner * columns + read + written * rows * columns);
  call.half == RowHalf::fp16 ? launch_half<__half>(call, stream)
                             : launch_half<__nv_bfloat16>(call, stream);
}

}  // namespace tandem
