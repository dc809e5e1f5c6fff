// The GPU side of leaky_cast.cpp: `count` values without gaps.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

struct __nv_bfloat16;

namespace tandem {

void launch_leaky_cast(const float* x, __nv_bfloat16* out, int64_t count, float slope,
                       cudaStream_t stream);
// x_gradient = gradient where out is positive, slope times it elsewhere.
void launch_leaky_cast_backward(const __nv_bfloat16* gradient, const __nv_bfloat16* out,
                                float* x_gradient, int64_t count, float slope, cudaStream_t stream);

}  // namespace tandem
