// What the kernels that draw share: a bound below which nothing can be among the k largest values.
#pragma once

namespace tandem {

constexpr int bound_steps = 256;  // into which the values are counted, from the largest down

// By all threads of the block, of which there are `threads`; `histogram` holds zeros. `steps`: of
// the counting, a unit of value. Ends with a barrier.
template <int threads>
__device__ inline void count_by_step(const float* values, int count, float high, float steps,
                                     int* histogram) {
  for (int i = threadIdx.x; i < count; i += threads) {
    const float step = (high - values[i]) * steps;
    if (step < bound_steps - 0.5f) atomicAdd(&histogram[static_cast<int>(step)], 1);
  }
  __syncthreads();
}

// By the first warp: a bound that at least k of the counted values reach and not many more. The
// same in all lanes; -infinity where fewer than k were counted.
__device__ inline float bound_reached_by(int k, float high, float steps, const int* histogram) {
  const int lane = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += histogram[lane * 8 + i];
  int before = sum;
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(~0u, before, offset);
    if (lane >= offset) before += other;
  }
  const uint32_t who = __ballot_sync(~0u, before >= k);
  if (who == 0 || !(steps > 0)) return -INFINITY;
  const int first = __ffs(static_cast<int>(who)) - 1;
  int step = lane * 8;
  if (lane == first) {
    before -= sum;
    while (before + histogram[step] < k) before += histogram[step++];
  }
  // The step's lower end, and a little more for rounding.
  return high - (static_cast<float>(__shfl_sync(~0u, step, first)) + 1.01f) / steps;
}

}  // namespace tandem
