// How a row becomes 8-bit floats, for the kernels that make one.
#pragma once

#include <cuda_fp8.h>

#include "nn/gpt_step/fp8.h"
#include "nn/gpt_step/gpt_rows.cuh"

namespace tandem {

constexpr float largest_fp8 = 448;

__device__ inline float largest_of(const Eight& x) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(x.v[i]));
  return largest;
}

// Over a block of whole warps; `shared` [2][warps], used in turn. A warp that is ahead writes the
// other half, and cannot be two turns ahead of one that still reads.
__device__ inline float block_largest(float x, float* shared, int turn) {
  const int warps = static_cast<int>(blockDim.x) / 32;
  x = warp_largest(x);
  float* place = shared + (turn & 1) * warps;
  if (threadIdx.x % 32 == 0) place[threadIdx.x / 32] = x;
  __syncthreads();
  for (int warp = 0; warp < warps; ++warp) x = fmaxf(x, place[warp]);
  return x;
}

// Of a row whose largest value is `largest`. What is smaller than this is nothing; what is not
// finite gives what is not finite, so that the loss shows it.
struct Fp8Scale {
  float scale, factor;
  __device__ explicit Fp8Scale(float largest) {
    largest = fmaxf(largest, 1e-30f);
    scale = largest / largest_fp8;
    factor = largest_fp8 / largest;
  }
};

__device__ inline void store_fp8(uint8_t* to, const Eight& from, float factor) {
  uint32_t word[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t low = __nv_cvt_float2_to_fp8x2(
        {from.v[4 * i] * factor, from.v[4 * i + 1] * factor}, __NV_SATFINITE, __NV_E4M3);
    const uint32_t high = __nv_cvt_float2_to_fp8x2(
        {from.v[4 * i + 2] * factor, from.v[4 * i + 3] * factor}, __NV_SATFINITE, __NV_E4M3);
    word[i] = low | high << 16;
  }
  *reinterpret_cast<uint2*>(to) = {word[0], word[1]};
}

}  // namespace tandem
