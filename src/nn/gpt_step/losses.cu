// Cross entropy: a block a row of logits, the gradient written over them.
#include <c10/cuda/CUDAException.h>

#include <climits>

#include "nn/gpt_step/gpt_rows.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256;

struct Best {
  float value;
  int token;
  __device__ void take(float v, int t) {
    if (v > value || (v == value && t < token)) value = v, token = t;
  }
};

template <class T, class Join>
__device__ T block_join(T x, T* shared, const Join& join) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    T other = x;
    if constexpr (sizeof(T) == 4) {
      other = __shfl_xor_sync(~0u, x, offset);
    } else {
      other.value = __shfl_xor_sync(~0u, x.value, offset);
      other.token = __shfl_xor_sync(~0u, x.token, offset);
    }
    x = join(x, other);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[0];
#pragma unroll
  for (int w = 1; w < threads / 32; ++w) x = join(x, shared[w]);
  return x;
}

__global__ void __launch_bounds__(threads) loss_rows(const LossCall call) {
  __shared__ float sums[threads / 32];
  __shared__ Best bests[threads / 32];
  const int row = blockIdx.x, target = call.target[row];
  bf16* logits = call.logits + row * call.stride;
  const Eight zero{};
  if (target < 0) {
    if (threadIdx.x == 0) {
      call.loss[row] = 0;
      if (call.hit) call.hit[row] = 0;
    }
    if (!call.scale) return;
    for (int at = 8 * threadIdx.x; at < call.stride; at += 8 * threads)
      store_eight(logits + at, zero);
    return;
  }
  const auto each = [&](const auto& act) {
    for (int at = 8 * threadIdx.x; at < call.tokens; at += 8 * threads) {
      Eight x = load_eight(logits + at);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (at + i < call.tokens) act(x.v[i], at + i);
    }
  };
  Best best{-INFINITY, INT_MAX};
  each([&](float x, int token) { best.take(x, token); });
  best = block_join(best, bests, [](Best a, const Best& b) {
    a.take(b.value, b.token);
    return a;
  });
  float sum = 0;
  each([&](float x, int) { sum += __expf(x - best.value); });
  sum = block_join(sum, sums, [](float a, float b) { return a + b; });
  if (threadIdx.x == 0) {
    call.loss[row] = best.value + __logf(sum) - __bfloat162float(logits[target]);
    if (call.hit) call.hit[row] = best.token == target ? 1.f : 0.f;
  }
  if (!call.scale) return;
  const float factor = call.factor * *call.scale / *call.whole, share = factor / sum;
  __syncthreads();  // the target's logit was read
  for (int at = 8 * threadIdx.x; at < call.stride; at += 8 * threads) {
    Eight x = load_eight(logits + at);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x.v[i] = at + i >= call.tokens ? 0.f : __expf(x.v[i] - best.value) * share;
      if (at + i == target) x.v[i] -= factor;
    }
    store_eight(logits + at, x);
  }
}

__global__ void __launch_bounds__(threads)
    sum_slots(const float* in, const float* whole, const int32_t* misfits, int texts, int slots,
              float* out) {
  __shared__ float sums[threads / 32];
  const int first = blockIdx.x == 0 ? 0 : texts, end = blockIdx.x == 0 ? texts : slots;
  float sum = 0;
  for (int slot = first + static_cast<int>(threadIdx.x); slot < end; slot += threads)
    sum += in[slot];
  sum = block_join(sum, sums, [](float a, float b) { return a + b; });
  if (threadIdx.x != 0) return;
  if (whole) sum = whole[blockIdx.x] > 0 ? sum / whole[blockIdx.x] : 0.f;
  out[blockIdx.x] = *misfits ? NAN : sum;
}

}  // namespace

void launch_loss(const LossCall& call, cudaStream_t stream) {
  const WorkNote note("tandem::loss", 0, (call.scale ? 4.0 : 2.0) * call.rows * call.tokens);
  loss_rows<<<call.rows, threads, 0, stream>>>(call);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void launch_sum_slots(const float* in, const float* whole, const int32_t* misfits, int texts,
                      int slots, float* out, cudaStream_t stream) {
  sum_slots<<<2, threads, 0, stream>>>(in, whole, misfits, texts, slots, out);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
