#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "nn/draw_bits.h"
#include "nn/dropout_launch.h"

namespace tandem {
namespace {

__global__ void factors_kernel(float* out, int64_t count, uint64_t key, const int64_t* step,
                               const int64_t* rows, int64_t each, uint32_t limit, float kept) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint64_t now = draw_bits(key, static_cast<uint64_t>(*step));
  if (rows) now = draw_bits(now, static_cast<uint64_t>(rows[i / each]));
  const auto bits = static_cast<uint32_t>(draw_bits(now, static_cast<uint64_t>(i % each)) >> 32);
  out[i] = bits < limit ? 0.0f : kept;
}

}  // namespace

void dropout_factors_cuda(at::Tensor& factors, const DropoutDraw& draw, uint32_t limit,
                          float kept) {
  constexpr int threads = 256;
  const int64_t count = factors.numel();
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + threads - 1) / threads);
  factors_kernel<<<blocks, threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      factors.mutable_data_ptr<float>(), count, draw.key, draw.step.const_data_ptr<int64_t>(),
      draw.rows.defined() ? draw.rows.const_data_ptr<int64_t>() : nullptr, draw.each, limit, kept);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
