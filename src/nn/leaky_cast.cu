#include <c10/cuda/CUDAException.h>
#include <cuda_bf16.h>

#include "nn/leaky_cast_launch.h"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256;
constexpr int each = 4;  // values of a thread, 16 bytes of float32

__device__ float leaky(float x, float slope) { return x > 0 ? x : x * slope; }

struct FourHalves {
  __nv_bfloat162 low, high;
};

__global__ void forward(const float* x, __nv_bfloat16* out, int64_t count, float slope) {
  const int64_t at = each * (static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x);
  if (at + each <= count) {
    const float4 v = *reinterpret_cast<const float4*>(x + at);
    const FourHalves four{__floats2bfloat162_rn(leaky(v.x, slope), leaky(v.y, slope)),
                          __floats2bfloat162_rn(leaky(v.z, slope), leaky(v.w, slope))};
    *reinterpret_cast<__nv_bfloat162*>(out + at) = four.low;
    *reinterpret_cast<__nv_bfloat162*>(out + at + 2) = four.high;
    return;
  }
  for (int64_t i = at; i < count; ++i) out[i] = __float2bfloat16_rn(leaky(x[i], slope));
}

__global__ void backward(const __nv_bfloat16* gradient, const __nv_bfloat16* out, float* x_gradient,
                         int64_t count, float slope) {
  const int64_t at = each * (static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x);
  const auto one = [&](__nv_bfloat16 g, __nv_bfloat16 y) {
    return __bfloat162float(g) * (__bfloat162float(y) > 0 ? 1.f : slope);
  };
  if (at + each <= count) {
    const auto* g = reinterpret_cast<const __nv_bfloat162*>(gradient + at);
    const auto* y = reinterpret_cast<const __nv_bfloat162*>(out + at);
    const __nv_bfloat162 g0 = g[0], g1 = g[1], y0 = y[0], y1 = y[1];
    *reinterpret_cast<float4*>(x_gradient + at) =
        make_float4(one(g0.x, y0.x), one(g0.y, y0.y), one(g1.x, y1.x), one(g1.y, y1.y));
    return;
  }
  for (int64_t i = at; i < count; ++i) x_gradient[i] = one(gradient[i], out[i]);
}

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + threads * each - 1) / (threads * each));
}

}  // namespace

void launch_leaky_cast(const float* x, __nv_bfloat16* out, int64_t count, float slope,
                       cudaStream_t stream) {
  if (count == 0) return;
  const WorkNote note("tandem::leaky_cast", 0, 6.0 * static_cast<double>(count));
  forward<<<blocks_for(count), threads, 0, stream>>>(x, out, count, slope);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void launch_leaky_cast_backward(const __nv_bfloat16* gradient, const __nv_bfloat16* out,
                                float* x_gradient, int64_t count, float slope,
                                cudaStream_t stream) {
  if (count == 0) return;
  const WorkNote note("tandem::leaky_cast_backward", 0, 8.0 * static_cast<double>(count));
  backward<<<blocks_for(count), threads, 0, stream>>>(gradient, out, x_gradient, count, slope);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
