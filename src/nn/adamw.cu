#include <ATen/core/TensorBody.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "nn/adamw_cell.h"
#include "nn/adamw_launch.h"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256;
constexpr int each = 4;  // numbers a thread takes at once: 16 bytes of float32

struct Pointers {
  float* weight;
  uint16_t* high;
  int16_t* low;
  void* gradient;  // float32, or bfloat16
  float *mean, *square, *average;
  const uint8_t* decays;
};

// What an arena of weights is.
enum class Arena { whole, split, half };  // half: split, with gradients in bfloat16

// One group a thread and as many threads as groups: a loop over fewer blocks takes three times as
// long here. What is read once is not kept in the cache.
template <Arena arena, bool averaged>
__global__ void step_kernel(Pointers p, int64_t groups, const float* values, AdamWNumbers n) {
  constexpr bool split = arena != Arena::whole;
  const int64_t group = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (group >= groups) return;
  auto* gradients = static_cast<float4*>(p.gradient) + group;
  if (values[adamw_good] == 0) {
    if constexpr (!split) __stcs(gradients, make_float4(0, 0, 0, 0));
    return;
  }
  auto* means = reinterpret_cast<float4*>(p.mean) + group;
  auto* squares = reinterpret_cast<float4*>(p.square) + group;
  float g[each];
  if constexpr (arena == Arena::half) {
    const uint2 packed = __ldcs(static_cast<const uint2*>(p.gradient) + group);
    g[0] = first_of_pair(packed.x), g[1] = second_of_pair(packed.x);
    g[2] = first_of_pair(packed.y), g[3] = second_of_pair(packed.y);
  } else {
    const float4 g4 = __ldcs(gradients);
    g[0] = g4.x, g[1] = g4.y, g[2] = g4.z, g[3] = g4.w;
  }
  float4 m4 = __ldcs(means), s4 = __ldcs(squares);
  float m[each] = {m4.x, m4.y, m4.z, m4.w}, s[each] = {s4.x, s4.y, s4.z, s4.w}, w[each];
  if constexpr (split) {
    const ushort4 up = reinterpret_cast<ushort4*>(p.high)[group];
    const short4 down = reinterpret_cast<short4*>(p.low)[group];
    w[0] = join_halves(up.x, down.x), w[1] = join_halves(up.y, down.y);
    w[2] = join_halves(up.z, down.z), w[3] = join_halves(up.w, down.w);
  } else {
    const float4 w4 = reinterpret_cast<float4*>(p.weight)[group];
    w[0] = w4.x, w[1] = w4.y, w[2] = w4.z, w[3] = w4.w;
  }
  n.learning_rate = values[adamw_learning_rate];
  n.correction1 = values[adamw_correction1];
  n.correction2_root = sqrtf(values[adamw_correction2]);
  n.factor = values[adamw_factor];
  n.average_decay = values[adamw_average];
  const bool decays = p.decays[group * each / adamw_chunk] != 0;
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const AdamWCell cell = adamw_cell({w[i], m[i], s[i]}, g[i], decays, n);
    w[i] = cell.weight, m[i] = cell.mean, s[i] = cell.square;
  }
  if constexpr (!split) __stcs(gradients, make_float4(0, 0, 0, 0));
  __stcs(means, make_float4(m[0], m[1], m[2], m[3]));
  __stcs(squares, make_float4(s[0], s[1], s[2], s[3]));
  if constexpr (split) {
    uint16_t up[each];
    int16_t down[each];
#pragma unroll
    for (int i = 0; i < each; ++i) up[i] = high_half(w[i]), down[i] = low_half(w[i], up[i]);
    reinterpret_cast<ushort4*>(p.high)[group] = make_ushort4(up[0], up[1], up[2], up[3]);
    reinterpret_cast<short4*>(p.low)[group] = make_short4(down[0], down[1], down[2], down[3]);
  } else {
    reinterpret_cast<float4*>(p.weight)[group] = make_float4(w[0], w[1], w[2], w[3]);
  }
  if constexpr (averaged) {
    float4 a = reinterpret_cast<float4*>(p.average)[group];
    const float keep = 1 - n.average_decay;
    a.x += keep * (w[0] - a.x), a.y += keep * (w[1] - a.y);
    a.z += keep * (w[2] - a.z), a.w += keep * (w[3] - a.w);
    reinterpret_cast<float4*>(p.average)[group] = a;
  }
}

__global__ void split_kernel(const float* full, uint16_t* high, int16_t* low, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  high[i] = high_half(full[i]);
  low[i] = low_half(full[i], high[i]);
}

__global__ void join_kernel(const uint16_t* high, const int16_t* low, float* full, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i < count) full[i] = join_halves(high[i], low[i]);
}

template <bool averaged>
auto kernel_of(Arena arena) {
  switch (arena) {
    case Arena::whole: return step_kernel<Arena::whole, averaged>;
    case Arena::split: return step_kernel<Arena::split, averaged>;
    default: return step_kernel<Arena::half, averaged>;
  }
}

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

}  // namespace

void adamw_step_cuda(const AdamWBuffers& b, const at::Tensor& values, const AdamWRule& rule) {
  const bool split = b.low.defined(), averaged = b.average.defined();
  const bool half = b.gradient.scalar_type() == at::kBFloat16;
  const Pointers p{split ? nullptr : b.weight.mutable_data_ptr<float>(),
                   split ? reinterpret_cast<uint16_t*>(b.weight.mutable_data_ptr()) : nullptr,
                   split ? b.low.mutable_data_ptr<int16_t>() : nullptr,
                   b.gradient.mutable_data_ptr(),
                   b.mean.mutable_data_ptr<float>(),
                   b.square.mutable_data_ptr<float>(),
                   averaged ? b.average.mutable_data_ptr<float>() : nullptr,
                   b.decays.const_data_ptr<uint8_t>()};
  AdamWNumbers n{};
  n.beta1 = static_cast<float>(rule.beta1);
  n.beta2 = static_cast<float>(rule.beta2);
  n.epsilon = static_cast<float>(rule.epsilon);
  n.weight_decay = static_cast<float>(rule.weight_decay);
  const int64_t groups = b.gradient.numel() / each;
  const Arena arena = half ? Arena::half : split ? Arena::split : Arena::whole;
  const auto kernel = averaged ? kernel_of<true>(arena) : kernel_of<false>(arena);
  // Read and written: weight, gradient (of split weights only read), both moments, the average.
  const int bytes = (averaged ? 40 : 32) - (half ? 6 : split ? 4 : 0);
  const WorkNote note("tandem::adamw", 0, static_cast<double>(b.gradient.numel()) * bytes);
  kernel<<<blocks_for(groups), threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      p, groups, values.const_data_ptr<float>(), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void split_float_cuda(const at::Tensor& full, at::Tensor& high, at::Tensor& low) {
  const at::Tensor from = full.contiguous();
  split_kernel<<<blocks_for(from.numel()), threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      from.const_data_ptr<float>(), reinterpret_cast<uint16_t*>(high.mutable_data_ptr()),
      low.mutable_data_ptr<int16_t>(), from.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void join_float_cuda(const at::Tensor& high, const at::Tensor& low, at::Tensor& full) {
  join_kernel<<<blocks_for(full.numel()), threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const uint16_t*>(high.const_data_ptr()), low.const_data_ptr<int16_t>(),
      full.mutable_data_ptr<float>(), full.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
