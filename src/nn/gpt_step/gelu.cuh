// GPT-2's GELU (tanh) and its slope.
#pragma once

#include "nn/gpt_step/gpt_rows.cuh"

namespace tandem {

constexpr float gelu_root = 0.7978845608028654f, gelu_cubic = 0.044715f;  // sqrt(2 / pi)

__device__ inline float tanh_fast(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float gelu(float x) {
  return 0.5f * x * (1.f + tanh_fast(gelu_root * (x + gelu_cubic * x * x * x)));
}

// x becomes gelu(x), d the gradient times its slope.
__device__ inline void gelu_slope(Eight& x, Eight& d) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float v = x.v[i], square = v * v;
    const float t = tanh_fast(gelu_root * v * (1.f + gelu_cubic * square));
    const float slope =
        0.5f * (1.f + t) + 0.5f * v * (1.f - t * t) * gelu_root * (1.f + 3.f * gelu_cubic * square);
    x.v[i] = 0.5f * v * (1.f + t);
    d.v[i] *= slope;
  }
}

}  // namespace tandem
