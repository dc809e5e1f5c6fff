// What the codec's kernels share.
#pragma once

#include <cuda_fp16.h>

#include "nn/rows/row_math.cuh"

namespace tandem {

// exp(x) - 1 below zero, to about 1e-6 of its value: far below the rounding to half that follows.
__device__ inline float codec_elu(float x) {
  const float near = x * (1.f + x * (0.5f + x * (1.f / 6.f)));
  return x > 0 ? x : x > -0.03f ? near : __expf(x) - 1.f;
}

// Which input position stands at t, -1: a zero. An input no longer than its padding `reach` is
// first lengthened by zeros, then reflected, then cut.
__device__ inline int codec_reflected(int t, int length, int reach) {
  const int full = max(length, reach + 1);
  if (t < 0) t = -t;
  if (t >= full) t = 2 * (full - 1) - t;
  return t >= 0 && t < length ? t : -1;
}

__device__ inline uint4 codec_load_tile(const __half* from) {
  uint4 tile;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(tile.x), "=r"(tile.y), "=r"(tile.z), "=r"(tile.w)
               : "r"(address));
  return tile;
}

}  // namespace tandem
