// What the row kernels share: the two half types, the tensor core's product, the norm of one row.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "nn/rows/row_kernels.h"

namespace tandem {

template <class H>
__device__ inline H to_half(float x);
template <>
__device__ inline __half to_half<__half>(float x) {
  // Beyond the largest half lies infinity, which would spread; the largest is near enough.
  return __float2half_rn(fminf(fmaxf(x, -65504.f), 65504.f));
}
template <>
__device__ inline __nv_bfloat16 to_half<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class H>
__device__ inline uint32_t half_pair(float low, float high) {
  const H pair[2] = {to_half<H>(low), to_half<H>(high)};
  uint32_t bits;
  memcpy(&bits, pair, 4);
  return bits;
}
template <class H>
__device__ inline float2 float_pair(uint32_t bits) {
  H pair[2];
  memcpy(pair, &bits, 4);
  return {to_float(pair[0]), to_float(pair[1])};
}

// c[16, 8] += a[16, 16] b[16, 8] by one warp.
template <class H>
__device__ inline void multiply_tile(float (&c)[4], const uint4& a, uint32_t b0, uint32_t b1);
template <>
__device__ inline void multiply_tile<__half>(float (&c)[4], const uint4& a, uint32_t b0,
                                             uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
  __trap();  // never launched there, see half_kernels_run
#endif
}
template <>
__device__ inline void multiply_tile<__nv_bfloat16>(float (&c)[4], const uint4& a, uint32_t b0,
                                                    uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
  __trap();  // never launched there, see half_kernels_run
#endif
}

__device__ inline float gelu_tanh(float x) {
  return 0.5f * x * (1.f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

__device__ inline float gelu_erf(float x) {
  return 0.5f * x * (1.f + erff(0.7071067811865476f * x));
}

__device__ inline float warp_sum(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

constexpr int norm_threads = 256;

// One row in the registers of a block of 256 threads, 4 * quads elements a thread: thread t holds
// 4 t + 1024 j and the three behind it. Widths are multiples of 4.
template <int quads>
struct BlockRow {
  float4 value[quads];

  __device__ void load(const float* row, int width) {
#pragma unroll
    for (int j = 0; j < quads; ++j) {
      const int i = 4 * threadIdx.x + 1024 * j;
      value[j] = i < width ? *reinterpret_cast<const float4*>(row + i) : float4{0, 0, 0, 0};
    }
  }
  // `scratch` holds 16 floats. `scale` and `shift` are rows of the norm's weight and bias.
  __device__ void normalise(const BlockRow& scale, const BlockRow& shift, int width,
                            float* scratch) {
    BlockRow* only = this;
    normalise_all<1>(only, 1, scale, shift, width, scratch);
  }
  // The first `count` of `most` rows at once, which costs hardly more than one. 16 floats of
  // scratch a row.
  template <int most>
  __device__ static void normalise_all(BlockRow* rows, int count, const BlockRow& scale,
                                       const BlockRow& shift, int width, float* scratch) {
    const int warp = threadIdx.x / 32;
    float mean[most];
#pragma unroll
    for (int r = 0; r < most; ++r) {
      if (r >= count) continue;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < quads; ++j) {
        const float4& v = rows[r].value[j];
        sum += (v.x + v.y) + (v.z + v.w);
      }
      sum = warp_sum(sum);
      if (threadIdx.x % 32 == 0) scratch[16 * r + warp] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < most; ++r) {
      if (r >= count) continue;
      mean[r] = sum_of_warps(scratch + 16 * r) / static_cast<float>(width);
      float squares = 0;
#pragma unroll
      for (int j = 0; j < quads; ++j) {
        if (4 * threadIdx.x + 1024 * j >= width) continue;
        const float4& v = rows[r].value[j];
        const float a = v.x - mean[r], b = v.y - mean[r];
        const float c = v.z - mean[r], d = v.w - mean[r];
        squares += (a * a + b * b) + (c * c + d * d);
      }
      squares = warp_sum(squares);
      if (threadIdx.x % 32 == 0) scratch[16 * r + 8 + warp] = squares;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < most; ++r) {
      if (r >= count) continue;
      const float spread =
          rsqrtf(sum_of_warps(scratch + 16 * r + 8) / static_cast<float>(width) + 1e-5f);
#pragma unroll
      for (int j = 0; j < quads; ++j) {
        float4& v = rows[r].value[j];
        v.x = (v.x - mean[r]) * spread * scale.value[j].x + shift.value[j].x;
        v.y = (v.y - mean[r]) * spread * scale.value[j].y + shift.value[j].y;
        v.z = (v.z - mean[r]) * spread * scale.value[j].z + shift.value[j].z;
        v.w = (v.w - mean[r]) * spread * scale.value[j].w + shift.value[j].w;
      }
    }
  }
  // Zeros beyond the width, up to `inner`: scale and shift are zero there.
  template <class H>
  __device__ void pack(H* packed, int row, int inner) const {
#pragma unroll
    for (int j = 0; j < quads; ++j) {
      const int i = 4 * threadIdx.x + 1024 * j;
      if (i >= inner) continue;
      *reinterpret_cast<uint32_t*>(packed + packed_index(row, i, inner)) =
          half_pair<H>(value[j].x, value[j].y);
      *reinterpret_cast<uint32_t*>(packed + packed_index(row, i + 2, inner)) =
          half_pair<H>(value[j].z, value[j].w);
    }
  }

 private:
  // The same in all threads: warps in order.
  __device__ static float sum_of_warps(const float* scratch) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < norm_threads / 32; ++w) sum += scratch[w];
    return sum;
  }
};

}  // namespace tandem
