// What the kernels of convolutions share: which input a row hears, and where its result goes.
#pragma once

#include <cuda_fp16.h>

#include "nn/conv/conv_kernels.h"
#include "nn/rows/row_math.cuh"
#include "nn/shared_memory.cuh"

namespace tandem {

constexpr int most_chunk = 128;  // channels of a stretch of the input in shared memory at once

// exp(x) - 1 below zero, to about 1e-6 of its value: far below the rounding to half that follows.
__device__ inline float elu(float x) {
  const float near = x * (1.f + x * (0.5f + x * (1.f / 6.f)));
  return x > 0 ? x : x > -0.03f ? near : __expf(x) - 1.f;
}

__device__ inline float4 activated(const ConvCall& call, float4 x) {
  if (call.activation == Activation::elu) return {elu(x.x), elu(x.y), elu(x.z), elu(x.w)};
  if (call.activation == Activation::none) return x;
  const auto leaky = [&](float v) { return v >= 0 ? v : v * call.slope; };
  return {leaky(x.x), leaky(x.y), leaky(x.z), leaky(x.w)};
}

__device__ inline uint2 half_quad(const float4& x) {
  return {half_pair<__half>(x.x, x.y), half_pair<__half>(x.z, x.w)};
}

// Which input position stands at t, -1: a zero. An input no longer than its padding `reach` is
// first lengthened by zeros, then reflected, then cut.
__device__ inline int reflected(int t, int length, int reach) {
  const int full = max(length, reach + 1);
  if (t < 0) t = -t;
  if (t >= full) t = 2 * (full - 1) - t;
  return t >= 0 && t < length ? t : -1;
}

__device__ inline uint4 load_matrix(const __half* from) {
  uint4 tile;
  const uint32_t address = shared_address(from);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(tile.x), "=r"(tile.y), "=r"(tile.z), "=r"(tile.w)
               : "r"(address));
  return tile;
}

// One clip of a call.
struct ConvClip {
  int clip, length;

  __device__ ConvClip(const ConvCall& call, int which)
      : clip(which), length(call.lengths ? call.lengths[which] * call.length_scale : call.length) {}

  // No row from this on is asked for. A transposed convolution has one more than its input: the
  // last positions' second tap.
  __device__ int end(const ConvCall& call) const {
    return min(call.first_row + call.rows, length + (call.rate > 1));
  }
  __device__ int input_row(const ConvCall& call, int t) const {
    if (call.reflect)
      return reflected(t, length, max(-call.first, call.first + (call.taps - 1) * call.dilation));
    return t < length ? t : -1;  // negative as it is
  }
  __device__ int64_t input_at(const ConvCall& call, int row, int channel) const {
    return clip * call.in_stride + static_cast<int64_t>(row) * call.channels + channel;
  }
  // Of channel 0 of one phase of row t of the result; -1: nowhere.
  __device__ int64_t result_at(const ConvCall& call, int t, int phase) const {
    const int position = (t - call.first_row) * call.rate + phase - call.shift;
    if (t >= end(call) || position < 0 || position >= (length - call.first_row) * call.rate)
      return -1;
    return clip * call.out_stride + static_cast<int64_t>(position) * (call.columns / call.rate);
  }
  __device__ const float* own_bias(const ConvCall& call) const {
    return call.clip_bias ? call.clip_bias + static_cast<int64_t>(clip) * (call.columns / call.rate)
                          : nullptr;
  }
};

}  // namespace tandem
