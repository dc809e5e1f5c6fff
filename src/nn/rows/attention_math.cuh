// What the kernels of attention over long caches share. Positions are taken in units, `unit_loads`
// loads of a warp each; unit u belongs to part u mod 32. A part is summed by one warp, in the order
// of its units, and the parts are merged in their order at the end. Which block or warp sums a part
// changes nothing, so the order of sums depends on the position alone.
//
// Within a warp a group of lanes takes one position at a time, 16 bytes a lane.
#pragma once

#include "nn/rows/music_kernels.h"
#include "nn/rows/row_math.cuh"
#include "nn/shared_memory.cuh"

namespace tandem {

constexpr int unit_loads = 4;
constexpr float no_score = -1e30f;  // finite, so that it may be subtracted from itself

// 16 bytes as floats.
template <class H, int count>
__device__ inline void widen(const uint4& bytes, float (&out)[count]) {
  const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (count == 8) {
      const float2 pair = float_pair<H>(words[w]);
      out[2 * w] = pair.x;
      out[2 * w + 1] = pair.y;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        out[4 * w + i] = static_cast<float>(static_cast<int8_t>(words[w] >> (8 * i)));
    }
  }
}

// Of a group of lanes, `each` elements a lane: the weighted values so far, their weights' sum, and
// the score both are relative to.
template <int each>
struct RunningSum {
  float largest = no_score, sum = 0, result[each] = {};

  // One unit; the lane's position of load i is start + i * step, those beyond `end` count nothing.
  // The scales are those of positions kept in 8 bits.
  template <class H, int lanes, bool eight>
  __device__ void add_unit(const float (&query)[each], const uint4 (&key)[unit_loads],
                           const uint4 (&value)[unit_loads], const float (&key_scale)[unit_loads],
                           const float (&value_scale)[unit_loads], int start, int end) {
    constexpr int step = 32 / lanes;
    float score[unit_loads], now = largest;
#pragma unroll
    for (int i = 0; i < unit_loads; ++i) {
      float k[each];
      widen<H>(key[i], k);
      score[i] = 0;
#pragma unroll
      for (int e = 0; e < each; ++e) score[i] += query[e] * k[e];
#pragma unroll
      for (int offset = lanes / 2; offset > 0; offset /= 2)
        score[i] += __shfl_xor_sync(~0u, score[i], offset);
      if constexpr (eight) score[i] *= key_scale[i];
      if (start + i * step > end) score[i] = -INFINITY;
      now = fmaxf(now, score[i]);
    }
    const float keep = __expf(largest - now);
    largest = now;
    sum *= keep;
#pragma unroll
    for (int e = 0; e < each; ++e) result[e] *= keep;
#pragma unroll
    for (int i = 0; i < unit_loads; ++i) {
      float weight = __expf(score[i] - now);
      sum += weight;
      if constexpr (eight) weight *= value_scale[i];
      float v[each];
      widen<H>(value[i], v);
#pragma unroll
      for (int e = 0; e < each; ++e) result[e] += weight * v[e];
    }
  }

  // The warp's groups become one, the same in all of them.
  template <int lanes>
  __device__ void merge_groups() {
#pragma unroll
    for (int offset = lanes; offset < 32; offset *= 2) {
      const float other = __shfl_xor_sync(~0u, largest, offset);
      const float top = fmaxf(largest, other);
      const float mine = __expf(largest - top), theirs = __expf(other - top);
      sum = sum * mine + __shfl_xor_sync(~0u, sum, offset) * theirs;
#pragma unroll
      for (int e = 0; e < each; ++e)
        result[e] = result[e] * mine + __shfl_xor_sync(~0u, result[e], offset) * theirs;
      largest = top;
    }
  }
};

// The sums of a row's parts, in shared memory: result, largest, sum.
template <int pad>
struct PartSums {
  static constexpr int threads = 256, parts = attention_parts;
  float sums[parts][pad + 2];
  float scales[parts], shares[threads / pad][pad];
  float whole;

  // By all threads of the block, when the first `used` parts are there. The result is element 2 t
  // and the one behind it in thread t; where there is no unit, zeros.
  __device__ float2 merge(int used, int units) {
    if (threadIdx.x < 32) {
      const float mine = static_cast<int>(threadIdx.x) < used ? sums[threadIdx.x][pad] : no_score;
      float top = mine;
      for (int offset = 16; offset > 0; offset /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, offset));
      const float scale = __expf(mine - top);
      scales[threadIdx.x] = scale;
      const float total =
          warp_sum(static_cast<int>(threadIdx.x) < used ? sums[threadIdx.x][pad + 1] * scale : 0.f);
      if (threadIdx.x == 0) whole = units > 0 ? total : 1.f;
    }
    __syncthreads();
    constexpr int share_count = threads / pad, share_parts = parts / share_count;
    const int element = threadIdx.x % pad, share = threadIdx.x / pad;
    float out = 0;
#pragma unroll
    for (int i = 0; i < share_parts; ++i) {
      const int mine = share * share_parts + i;
      if (mine < used) out += sums[mine][element] * scales[mine];
    }
    shares[share][element] = out;
    __syncthreads();
    const int at = threadIdx.x * 2;
    float2 y = {0, 0};
    if (at >= pad) return y;
#pragma unroll
    for (int i = 0; i < share_count; ++i) y.x += shares[i][at], y.y += shares[i][at + 1];
    return {y.x / whole, y.y / whole};
  }
};

// Blocks of a cluster start together, meet, and write into each other's shared memory.
__device__ inline void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#endif
}
__device__ inline void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}
// Where this block's shared memory `here` is in block `rank` of its cluster.
__device__ inline uint32_t address_in_block(const void* here, int rank) {
  uint32_t there = 0;
#if __CUDA_ARCH__ >= 900
  const uint32_t address = shared_address(here);
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
#endif
  return there;
}
__device__ inline void store_in_block(const void* here, int rank, float value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address_in_block(here, rank)), "f"(value)
               : "memory");
#endif
}
__device__ inline void store_in_block(const void* here, int rank, uint32_t value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address_in_block(here, rank)), "r"(value)
               : "memory");
#endif
}

}  // namespace tandem
