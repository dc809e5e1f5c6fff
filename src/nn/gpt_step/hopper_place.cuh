// What the attention kernels share: one block a (tile of rows, head), `groups` warpgroups of 64
// rows each walking together over tiles of the other side, some of which are in flight.
#pragma once

#include <c10/cuda/CUDAException.h>

#include "nn/gpt_step/hopper_attention.h"
#include "nn/gpt_step/hopper_tiles.cuh"
#include "nn/work_note.h"

// Kernels have a body where Hopper's own instructions may be used; elsewhere they are never
// launched.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
#define TANDEM_HOPPER 1
#endif

namespace tandem {

// Warpgroups of a block: those over queries share what they read; those over keys keep twice as
// much in registers and are better alone.
constexpr int query_groups = query_tile_rows / tile_side, key_groups = key_tile_rows / tile_side;
constexpr float log2_e = 1.4426950408889634f;
constexpr float score_scale = 0.125f;  // 1 / sqrt(64)

// What a block works on.
struct Place {
  int head, start, length, first;  // of the sequence; first row of the block in it
  int group, lane, row;            // row: of this thread's first value in its warpgroup's tile
  int64_t stride;                  // of qkv
  int64_t out_stride;
  int of_head, of_kind;  // in a row of qkv: begin of this head, from one of its three to the next

  __device__ Place(const HopperAttention& call, const int4& tile)
      : head(blockIdx.x),
        start(tile.x),
        length(tile.y),
        first(tile.z),
        group(threadIdx.x / warpgroup_threads),
        lane(threadIdx.x % 32),
        row(threadIdx.x % warpgroup_threads / 32 * 16 + threadIdx.x % 32 / 4),
        stride(int64_t{3} * call.heads * tile_side),
        out_stride(int64_t{1} * call.heads * tile_side),
        of_head(call.by_head ? 3 * tile_side * head : tile_side * head),
        of_kind(call.by_head ? tile_side : tile_side * call.heads) {}
  // which: 0 query, 1 key, 2 value
  template <class T>
  __device__ T* of_qkv(T* qkv, int which) const {
    return qkv + start * stride + of_head + which * of_kind;
  }
  template <class T>
  __device__ T* of_out(T* out) const {
    return out + start * out_stride + head * tile_side;
  }
  template <class T>
  __device__ T* of_numbers(T* numbers, int places) const {
    return numbers + static_cast<int64_t>(head) * places + start;
  }
};

__device__ inline char* aligned_shared() {
  extern __shared__ char raw[];
  return raw + ((1024 - (shared_address(raw) & 1023)) & 1023);
}

// Of a query's last tile of keys: above the diagonal it stands on, or behind the sequence's end.
template <bool causal>
__device__ inline bool is_unseen(const Place& at, int i, int block) {
  const int column = 8 * (i / 4) + 2 * (at.lane % 4) + i % 2;
  return causal ? column > at.row + 8 * (i % 4 / 2) : column >= at.length - block * tile_side;
}

// The sums of a block's results over their rows, warps in order: to[64]. `shared` holds 64 floats a
// warp; nobody else uses it then.
template <int groups>
__device__ inline void write_column_sums(const Accumulator& result, float factor, float* shared,
                                         float* to) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float sum = (result[4 * j + e] + result[4 * j + 2 + e]) * factor;
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2) sum += __shfl_xor_sync(~0u, sum, offset);
      if (lane < 4) shared[warp * tile_side + 8 * j + 2 * lane + e] = sum;
    }
  __syncthreads();
  if (threadIdx.x >= tile_side) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < 4 * groups; ++w) sum += shared[w * tile_side + threadIdx.x];
  to[threadIdx.x] = sum;
}

// `products`: of [rows, 64] and [64, rows]; `matrices` [places, heads, 64] are read or written.
inline WorkNote attention_note(const char* name, const HopperAttention& call, int products,
                               int matrices) {
  const double width = 64.0 * call.heads;
  return WorkNote(name, 2 * products * call.pairs * width,
                  call.pairs > 0 ? 2 * matrices * width * call.places : 0);
}

template <class Kernel>
void launch_tiles(Kernel kernel, const HopperAttention& call, int groups, int tiles, int numbers,
                  cudaStream_t stream) {
  const int bytes = tiles * tile_bytes + numbers + 1024;  // and room to align
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const dim3 grid(
      static_cast<unsigned>(call.heads),
      static_cast<unsigned>(attention_tiles(call.places, call.sequences, groups * tile_side)));
  kernel<<<grid, groups * warpgroup_threads, static_cast<size_t>(bytes), stream>>>(call);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
