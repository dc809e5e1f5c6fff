// Begin and end of a step of decoding: the input of each row from its last code, and the next code
// from its logits.
#include <algorithm>

#include "nn/draw_bits.h"
#include "nn/rows/draw_math.cuh"
#include "nn/rows/launch.cuh"
#include "nn/rows/row_math.cuh"

namespace tandem {
namespace {

constexpr int threads = bound_steps, most_codes = 16384;

__global__ void row_begin(const RowBegin call) {
  if (call.successor_awaits) release_successor();
  await_predecessor();
  const int row = blockIdx.x;
  int place = call.row_place[row];
  if (place >= 0 && !call.states[place].active) place = -1;
  const DrawState state = place >= 0 ? call.states[place] : DrawState{};
  if (threadIdx.x == 0) {
    call.place[row] = place;
    call.position[row] = state.position;
    call.step[row] = state.step;
  }
  if (place < 0) return;
  const float* code = call.embedding + static_cast<int64_t>(state.code) * call.width;
  const float* position = call.position_embedding + static_cast<int64_t>(state.step) * call.width;
  for (int i = threadIdx.x; i < call.width; i += blockDim.x)
    call.x[static_cast<int64_t>(row) * call.width + i] = code[i] + position[i];
}

// Larger floats have larger keys.
__device__ uint32_t order_key(float x) {
  const uint32_t bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ float key_value(uint32_t key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// A bound that at least k of the values reach and not many more: they are counted in 256 steps from
// the largest down to the least.
__device__ float bound_of(const float* values, int count, int k, int* histogram, float* scratch) {
  float high = -INFINITY, low = INFINITY;
  for (int i = threadIdx.x; i < count; i += threads) {
    high = fmaxf(high, values[i]);
    low = fminf(low, values[i]);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    high = fmaxf(high, __shfl_xor_sync(~0u, high, offset));
    low = fminf(low, __shfl_xor_sync(~0u, low, offset));
  }
  histogram[threadIdx.x] = 0;
  if (threadIdx.x % 32 == 0) {
    scratch[threadIdx.x / 32] = high;
    scratch[8 + threadIdx.x / 32] = low;
  }
  __syncthreads();
  for (int w = 0; w < threads / 32; ++w) {
    high = fmaxf(high, scratch[w]);
    low = fminf(low, scratch[8 + w]);
  }
  // Far below the largest nothing is ever drawn, so the steps are spent near it.
  low = fmaxf(low, high - 64.f);
  const float steps = high > low ? 255.f / (high - low) : 0.f;
  count_by_step<threads>(values, count, high, steps, histogram);
  if (threadIdx.x < 32) {
    const float bound = bound_reached_by(k, high, steps, histogram);
    if (threadIdx.x == 0) scratch[0] = bound;
  }
  __syncthreads();
  return scratch[0];
}

// Descending by value, ascending by code where equal. `size` is a power of two.
__device__ void sort_candidates(uint64_t* items, int size) {
  for (int length = 2; length <= size; length *= 2) {
    for (int stride = length / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < size / 2; i += threads) {
        const int low = 2 * i - (i & (stride - 1)), high = low + stride;
        const bool descending = (low & length) == 0;
        if ((items[low] < items[high]) == descending) {
          const uint64_t swapped = items[low];
          items[low] = items[high];
          items[high] = swapped;
        }
      }
    }
  }
  __syncthreads();
}

__device__ int code_of(uint64_t item) { return static_cast<int>(~static_cast<uint32_t>(item)); }

// By one warp, from candidates in order. All as likely as the k-th stay; of these the likeliest
// that hold top_p together; one of these by a number in [0, 1). Sums run over 32 candidates at a
// time.
__device__ int draw_sorted(const DrawState& state, const uint64_t* items, int count, int keep,
                           bool greedy, float* weights) {
  if (greedy) return code_of(items[0]);
  const int lane = threadIdx.x;
  const uint32_t least = static_cast<uint32_t>(items[min(keep, count) - 1] >> 32);
  const float top = key_value(static_cast<uint32_t>(items[0] >> 32));
  float total = 0;
  int kept = 0;
  for (int start = 0; start < count; start += 32) {
    const int i = start + lane;
    const bool stays = i < count && static_cast<uint32_t>(items[i] >> 32) >= least;
    const float weight = stays ? expf(key_value(static_cast<uint32_t>(items[i] >> 32)) - top) : 0.f;
    float sum = weight;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float other = __shfl_up_sync(~0u, sum, offset);
      if (lane >= offset) sum += other;
    }
    if (i < count) weights[i] = total + sum;  // of this one and all before
    total += __shfl_sync(~0u, sum, 31);
    kept += __popc(__ballot_sync(~0u, stays));
  }
  __syncwarp();
  // A code stays while those likelier than it hold less than top_p.
  int last = 0;
  for (int start = 0; start < kept; start += 32) {
    const int i = start + lane;
    const bool stays = i < kept && (i == 0 || weights[i - 1] < state.top_p * total);
    last += __popc(__ballot_sync(~0u, stays));
  }
  const uint64_t bits = draw_bits(state.key, static_cast<uint64_t>(state.step));
  const float mark = static_cast<float>(bits >> 40) * 0x1p-24f * weights[last - 1];
  int chosen = 0;
  for (int start = 0; start < last; start += 32) {
    const int i = start + lane;
    chosen += __popc(__ballot_sync(~0u, i < last && weights[i] <= mark));
  }
  return code_of(items[min(chosen, last - 1)]);
}

__global__ void __launch_bounds__(threads) row_draw(const RowDraw call) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int row = blockIdx.x;
  auto* items = reinterpret_cast<uint64_t*>(shared);  // candidates: key | ~code
  __shared__ int histogram[threads];
  __shared__ float scratch[16];
  __shared__ int candidates;
  release_successor();
  await_predecessor();
  const int place = call.place[row];
  if (place < 0) {
    if (threadIdx.x == 0) call.drawn[row] = -1;
    return;
  }
  DrawState& kept = call.states[place];
  const DrawState state = kept;
  uint32_t* seen = call.seen + static_cast<int64_t>(place) * call.seen_words;
  int size = 32;
  while (size < call.codes) size *= 2;
  auto* values = reinterpret_cast<float*>(shared + sizeof(uint64_t) * size);
  const bool greedy = state.greedy != 0;
  const float* logits = call.logits + static_cast<int64_t>(row) * call.logit_stride;
  for (int i = threadIdx.x; i < call.codes; i += threads) {
    float value = logits[i];
    if (seen[i / 32] >> (i % 32) & 1)
      value = value < 0 ? value * state.penalty : value / state.penalty;
    values[i] = greedy ? value : value / state.temperature;
  }
  if (threadIdx.x == 0) candidates = 0;
  __syncthreads();
  const int keep = greedy ? 1 : state.top_k > 0 ? min(state.top_k, call.codes) : call.codes;
  const float bound =
      keep < call.codes ? bound_of(values, call.codes, keep, histogram, scratch) : -INFINITY;
  for (int i = threadIdx.x; i < call.codes; i += threads) {
    if (!(values[i] >= bound)) continue;
    items[atomicAdd(&candidates, 1)] =
        static_cast<uint64_t>(order_key(values[i])) << 32 | static_cast<uint32_t>(~i);
  }
  __syncthreads();
  const int count = candidates;
  size = 32;
  while (size < count) size *= 2;
  for (int i = count + threadIdx.x; i < size; i += threads) items[i] = 0;
  sort_candidates(items, size);
  if (threadIdx.x >= 32) return;
  const int code = draw_sorted(state, items, count, keep, greedy, values);
  if (threadIdx.x != 0) return;
  seen[code / 32] |= 1u << (code % 32);
  kept.code = code;
  kept.position = state.position + 1;
  kept.step = state.step + 1;
  if (code == state.stop_code || state.step + 1 >= state.max_steps) kept.active = 0;
  call.drawn[row] = code;
}

}  // namespace

void launch_row_begin(const RowBegin& call, cudaStream_t stream) {
  launch_in_turn(row_begin, dim3(call.rows), dim3(threads), 0, stream, call);
}

void launch_row_draw(const RowDraw& call, cudaStream_t stream) {
  TORCH_CHECK(call.codes <= most_codes, "a vocabulary of ", call.codes, " codes; at most ",
              most_codes);
  size_t size = 1;
  while (size < static_cast<size_t>(call.codes)) size *= 2;
  size = std::max<size_t>(size, 32);
  const size_t shared = size * sizeof(uint64_t) + sizeof(float) * call.codes;
  if (shared > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(row_draw, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  }
  launch_in_turn(row_draw, dim3(call.rows), dim3(threads), shared, stream, call);
}

}  // namespace tandem
