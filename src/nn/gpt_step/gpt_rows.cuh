// What the kernels of GptStep share: eight values of a row at a time, sums over a group of threads,
// the mask of dropout.
#pragma once

#include <cuda_bf16.h>

#include "nn/draw_bits.h"
#include "nn/float_bits.h"
#include "nn/gpt_step/gpt_kernels.h"

namespace tandem {

struct Eight {
  float v[8];
};

// Eight bfloat16 as they lie in memory: a quarter of the registers.
using PackedEight = uint4;

__device__ inline Eight unpack(const PackedEight& bits) {
  const uint32_t word[4] = {bits.x, bits.y, bits.z, bits.w};
  Eight out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out.v[2 * i] = first_of_pair(word[i]);
    out.v[2 * i + 1] = second_of_pair(word[i]);
  }
  return out;
}
__device__ inline PackedEight pack(const Eight& from) {
  uint32_t word[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(from.v[2 * i], from.v[2 * i + 1]);
    memcpy(&word[i], &pair, 4);
  }
  return {word[0], word[1], word[2], word[3]};
}
__device__ inline PackedEight load_packed(const bf16* from) {
  return *reinterpret_cast<const PackedEight*>(from);
}
__device__ inline Eight load_eight(const bf16* from) { return unpack(load_packed(from)); }
__device__ inline Eight load_eight(const float* from) {
  const float4 a = reinterpret_cast<const float4*>(from)[0];
  const float4 b = reinterpret_cast<const float4*>(from)[1];
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}
__device__ inline void store_eight(bf16* to, const Eight& from) {
  *reinterpret_cast<PackedEight*>(to) = pack(from);
}
__device__ inline void store_eight(float* to, const Eight& from) {
  reinterpret_cast<float4*>(to)[0] = {from.v[0], from.v[1], from.v[2], from.v[3]};
  reinterpret_cast<float4*>(to)[1] = {from.v[4], from.v[5], from.v[6], from.v[7]};
}

__device__ inline uint64_t dropout_key(const Dropout& dropout) {
  return draw_bits(draw_bits(dropout.seed, static_cast<uint64_t>(*dropout.step)),
                   static_cast<uint64_t>(dropout.stream));
}
// Multiplies the eight columns from `column` on by 0 or 1 / (1 - p): 16 bits decide each.
__device__ inline void drop_eight(Eight& x, const Dropout& dropout, uint64_t key, int place,
                                  int column, int width) {
  const float keep = 65536.f / static_cast<float>(65536 - dropout.threshold);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint64_t bits =
        draw_bits(key, static_cast<uint64_t>(place) * (width / 4) + column / 4 + half);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t draw = static_cast<uint32_t>(bits >> (16 * i)) & 0xffff;
      x.v[4 * half + i] *= draw < dropout.threshold ? 0.f : keep;
    }
  }
}

__device__ inline float warp_largest(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  return x;
}

// A row is read by a group of 128 threads; thread t of it holds columns 8 t + 1024 j and the seven
// behind. A block has `groups` groups, each with a barrier of its own.
constexpr int group_threads = 128;

struct RowGroup {
  int group, thread;
  float2* scratch;  // [2][4] of this group, used in turn

  __device__ RowGroup(float2* shared)
      : group(threadIdx.x / group_threads),
        thread(threadIdx.x % group_threads),
        scratch(shared + 8 * (threadIdx.x / group_threads)) {}

  __device__ void sync() const {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(group_threads) : "memory");
  }
  // Two sums over the group, the same bits in all its threads. `turn` alternates between calls.
  __device__ float2 sum(float a, float b, int turn) const {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      a += __shfl_xor_sync(~0u, a, offset);
      b += __shfl_xor_sync(~0u, b, offset);
    }
    float2* place = scratch + 4 * (turn & 1);
    if (thread % 32 == 0) place[thread / 32] = {a, b};
    sync();
    float2 out = place[0];
#pragma unroll
    for (int i = 1; i < 4; ++i) out.x += place[i].x, out.y += place[i].y;
    return out;
  }
  // The largest of the group; `shared` [2][4] of it, used in turn.
  __device__ float largest(float x, float* shared, int turn) const {
    x = warp_largest(x);
    float* place = shared + 4 * (turn & 1);
    if (thread % 32 == 0) place[thread / 32] = x;
    sync();
    return fmaxf(fmaxf(place[0], place[1]), fmaxf(place[2], place[3]));
  }
};

}  // namespace tandem
