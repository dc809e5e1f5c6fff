// Tiles of 64 x 64 bfloat16 in shared memory, and Hopper's products of them by a warpgroup (128
// threads). A tile's rows have 128 bytes; their eight 16-byte chunks are swapped by the row's
// number so that reads of a column hit different banks (the 128-byte swizzle that wgmma knows).
//
// A product's result [64, 64] lies in registers: of warp w, lane 4 g + t, value 4 j + e is row
// 16 w + g + 8 (e / 2), column 8 j + 2 t + e % 2.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "nn/shared_memory.cuh"

namespace tandem {

constexpr int tile_side = 64;
constexpr int tile_bytes = tile_side * tile_side * 2;
constexpr int warpgroup_threads = 128;

using Accumulator = float[32];

// 16-byte chunk `chunk` of row `row` of a tile.
__device__ inline uint32_t chunk_offset(int row, int chunk) {
  return static_cast<uint32_t>(row * 128 + ((chunk ^ (row & 7)) << 4));
}

// Copies tiles of a matrix of `length` rows into shared memory; zeros behind its end. Each thread
// always has the same chunks of a tile.
template <int threads>
struct TileReader {
  static constexpr int step = threads / 8;  // rows from one of its chunks to the next
  static_assert(step % 8 == 0 && tile_side % step == 0);
  const char* from;
  int64_t stride;  // bytes of a row
  uint32_t to;
  int row, length;

  __device__ TileReader(const __nv_bfloat16* matrix, int64_t row_stride, int rows)
      : stride(2 * row_stride), row(threadIdx.x / 8), length(rows) {
    from = reinterpret_cast<const char*>(matrix) + row * stride + threadIdx.x % 8 * 16;
    to = chunk_offset(row, threadIdx.x % 8);
  }
  // Rows first .. first + 63.
  __device__ void fetch(uint32_t tile, int first) const {
    const char* source = from + first * stride;
#pragma unroll
    for (int i = 0; i < tile_side / step; ++i) {
      const int bytes = first + row + i * step < length ? 16 : 0;
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(tile + to + i * step * 128),
          "l"(source + i * step * stride), "r"(bytes)
          : "memory");
    }
  }
};
__device__ inline void fetch_number(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
// All but the last `open` groups have arrived and are seen by the tensor cores, for all threads.
template <int open>
__device__ inline void await_fetch() {
  await_copies<open>();
  show_to_products();
  __syncthreads();
}

// Where a tile is, told to wgmma: 128-byte swizzle, groups of eight rows 1024 bytes apart.
__device__ inline uint64_t tile_descriptor(uint32_t tile) {
  return static_cast<uint64_t>((tile & 0x3ffff) >> 4) | (uint64_t{1} << 16) | (uint64_t{64} << 32) |
         (uint64_t{1} << 62);
}

#define TANDEM_ACCUMULATORS                                                                     \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31}"
#define TANDEM_ACCUMULATOR_OPERANDS(d)                                                            \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),    \
      "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),  \
      "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),  \
      "+f"(d[29]), "+f"(d[30]), "+f"(d[31])

__device__ inline void open_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void close_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int open>
__device__ inline void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(open) : "memory");
}
// Values of a product are not touched before this.
__device__ inline void settle(Accumulator& d) {
#pragma unroll
  for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// d = a b^T, both tiles read along their rows.
__device__ inline void multiply_rows(Accumulator& d, uint32_t a, uint32_t b) {
  const uint64_t left = tile_descriptor(a), right = tile_descriptor(b);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " TANDEM_ACCUMULATORS
        ", %32, %33, p, 1, 1, 0, 0; }"
        : TANDEM_ACCUMULATOR_OPERANDS(d)
        : "l"(left + 2 * k), "l"(right + 2 * k), "r"(k));
  }
}

// The bfloat16 of a result as left side of the next product: [k][4].
using LeftSide = uint32_t[4][4];
__device__ inline void to_left_side(const Accumulator& from, LeftSide& to) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 8 * k + 2 * i;
      const __nv_bfloat162 pair = __floats2bfloat162_rn(from[at], from[at + 1]);
      memcpy(&to[k][i], &pair, 4);
    }
}
// d += a b, b read along its columns.
__device__ inline void multiply_columns(Accumulator& d, const LeftSide& a, uint32_t b) {
  const uint64_t right = tile_descriptor(b);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " TANDEM_ACCUMULATORS
                 ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : TANDEM_ACCUMULATOR_OPERANDS(d)
                 : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]), "l"(right + 128 * k));
  }
}

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// A warpgroup writes its result to rows first .. of a matrix, through a tile that nobody reads any
// more. Each warp passes its own sixteen rows.
__device__ inline void store_result(const Accumulator& d, float factor0, float factor1, char* tile,
                                    __nv_bfloat16* matrix, int64_t stride, int first, int length) {
  const int warp = static_cast<int>(threadIdx.x) % warpgroup_threads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = 16 * warp + lane / 4;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const uint32_t inside = 4 * (lane % 4);
    *reinterpret_cast<__nv_bfloat162*>(tile + chunk_offset(row, j) + inside) =
        __floats2bfloat162_rn(d[4 * j] * factor0, d[4 * j + 1] * factor0);
    *reinterpret_cast<__nv_bfloat162*>(tile + chunk_offset(row + 8, j) + inside) =
        __floats2bfloat162_rn(d[4 * j + 2] * factor1, d[4 * j + 3] * factor1);
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int at = lane + 32 * i, from = 16 * warp + at / 8, chunk = at % 8;
    if (first + from < length)
      *reinterpret_cast<uint4*>(matrix + (first + from) * stride + 8 * chunk) =
          *reinterpret_cast<const uint4*>(tile + chunk_offset(from, chunk));
  }
  __syncwarp();
}

}  // namespace tandem
