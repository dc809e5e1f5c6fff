// Begin and end of a step of MusicGen.
#include "nn/draw_bits.h"
#include "nn/draw_weight.h"
#include "nn/rows/draw_math.cuh"
#include "nn/rows/launch.cuh"
#include "nn/rows/music_kernels.h"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256, warps = threads / 32;

// Four columns of a row from `i` on: the codebooks' embeddings in their order, then the sinusoid.
// Several are asked for before the first is added.
__device__ float4 embed(const MusicBegin& call, const int32_t* tokens, int column, int i) {
  const auto four = [&](const float* table, int64_t row) {
    return *reinterpret_cast<const float4*>(table + row * call.width + i);
  };
  const auto add = [](float4& sum, const float4& part) {
    sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
  };
  constexpr int at_once = 4;
  const int all = call.batch.codebooks;
  const float4 sinusoid = four(call.sinusoids, column);
  float4 sum = {0, 0, 0, 0};
  for (int first = 0; first < all; first += at_once) {
    float4 part[at_once];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const int k = min(first + j, all - 1);
      const int token = tokens[static_cast<int64_t>(k) * call.batch.columns];
      part[j] = four(call.embeddings, static_cast<int64_t>(k) * call.embedding_rows + token);
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j)
      if (first + j < all) add(sum, part[j]);
  }
  add(sum, sinusoid);
  return sum;
}

__global__ void __launch_bounds__(threads) music_begin(const MusicBegin call) {
  if (call.successor_awaits) release_successor();
  await_predecessor();
  const int row = blockIdx.x, place = call.row_place[row];
  const int column = call.row_column ? call.row_column[row] : *call.batch.column;
  if (threadIdx.x == 0) {
    call.place[row] = place;
    call.position[row] = column;
    call.own_row[row] = place < 0 ? -1 : row;
  }
  float* x = call.x + static_cast<int64_t>(row) * call.width;
  if (place < 0) {  // left alone, it would grow without end
    for (int i = threadIdx.x; i < call.width; i += threads) x[i] = 0;
    return;
  }
  const MusicTokens& batch = call.batch;
  const int clip = place < batch.clips ? place : place - batch.clips;
  const int32_t* tokens =
      batch.tokens + static_cast<int64_t>(clip) * batch.codebooks * batch.columns + column;
  for (int i = 4 * threadIdx.x; i < call.width; i += 4 * threads)
    *reinterpret_cast<float4*>(x + i) = embed(call, tokens, column, i);
}

struct DrawScratch {
  float high[warps], low[warps];
  uint64_t sums[warps];
  int histogram[bound_steps];
  float bound;
  int candidates, bad;
};

// Largest and least of the block's values, the same in all threads.
__device__ float2 range_of(const float* values, int count, DrawScratch& scratch) {
  float high = -INFINITY, low = INFINITY;
  bool bad = false;
  for (int i = threadIdx.x; i < count; i += threads) {
    high = fmaxf(high, values[i]);
    low = fminf(low, values[i]);
    bad |= isnan(values[i]);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    high = fmaxf(high, __shfl_xor_sync(~0u, high, offset));
    low = fminf(low, __shfl_xor_sync(~0u, low, offset));
  }
  if (threadIdx.x % 32 == 0) {
    scratch.high[threadIdx.x / 32] = high;
    scratch.low[threadIdx.x / 32] = low;
  }
  if (bad) scratch.bad = 1;
  __syncthreads();
  for (int w = 0; w < warps; ++w) {
    high = fmaxf(high, scratch.high[w]);
    low = fminf(low, scratch.low[w]);
  }
  return {low, high};
}

// A bound that at least k of the values reach and not many more, or all that can be drawn: they are
// counted in 256 steps from the largest down.
__device__ float bound_of(const float* values, int count, int k, float low, float high,
                          DrawScratch& scratch) {
  low = fmaxf(low, high - 22.f);  // what is below weighs nothing
  const float steps = high > low ? 255.f / (high - low) : 0.f;
  count_by_step<threads>(values, count, high, steps, scratch.histogram);
  if (threadIdx.x < 32) {
    const float bound = bound_reached_by(k, high, steps, scratch.histogram);
    if (threadIdx.x == 0) scratch.bound = bound;
  }
  __syncthreads();
  return fmaxf(scratch.bound, high - 22.f);
}

// The sum of the block's numbers, and of those of the threads before this one.
__device__ uint64_t sum_and_before(uint64_t mine, uint64_t& before, DrawScratch& scratch) {
  uint64_t up_to = mine;
  for (int offset = 1; offset < 32; offset *= 2) {
    const uint64_t other = __shfl_up_sync(~0u, up_to, offset);
    if (static_cast<int>(threadIdx.x % 32) >= offset) up_to += other;
  }
  __syncthreads();  // the scratch may still be read
  if (threadIdx.x % 32 == 31) scratch.sums[threadIdx.x / 32] = up_to;
  __syncthreads();
  uint64_t total = 0;
  before = up_to - mine;
  for (int w = 0; w < warps; ++w) {
    if (w < static_cast<int>(threadIdx.x / 32)) before += scratch.sums[w];
    total += scratch.sums[w];
  }
  return total;
}

// The first code, in the order of their numbers, at which the weights added up exceed the mark.
__device__ void pick(const uint32_t* weights, int codes, uint64_t bits, int32_t* token,
                     DrawScratch& scratch) {
  const int each = (codes + threads - 1) / threads;
  const int first = threadIdx.x * each, end = min(first + each, codes);
  uint64_t mine = 0, before = 0;
  for (int i = first; i < end; ++i) mine += weights[i];
  const uint64_t total = sum_and_before(mine, before, scratch);
  const uint64_t mark = draw_mark(bits, total);
  if (mark < before || mark >= before + mine) return;
  int code = first;
  while ((before += weights[code]) <= mark) ++code;
  *token = code;
}

__global__ void __launch_bounds__(threads) music_draw(const MusicDraw call) {
  extern __shared__ __align__(16) float values[];  // [V]
  auto* weights = reinterpret_cast<uint32_t*>(values + call.codes);
  auto* candidates = reinterpret_cast<int*>(weights + call.codes);
  __shared__ DrawScratch scratch;
  scratch.histogram[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    scratch.candidates = scratch.bad = 0;
    scratch.bound = -INFINITY;
  }
  for (int i = threadIdx.x; i < call.codes; i += threads) weights[i] = 0;
  release_successor();
  await_predecessor();
  const MusicTokens& batch = call.batch;
  const int row = blockIdx.x, codebook = blockIdx.y;
  if (row == 0 && codebook == 0 && threadIdx.x == 0) *batch.column += 1;
  const int clip = call.place[row];
  if (clip < 0) return;
  const int column = call.position[row] + 1;
  int32_t* token = batch.tokens +
                   (static_cast<int64_t>(clip) * batch.codebooks + codebook) * batch.columns +
                   column;
  if (*token >= 0) return;
  const MusicDrawSettings settings = *call.settings;
  const float* with =
      call.logits + (static_cast<int64_t>(row) * batch.codebooks + codebook) * call.codes;
  const float* without = with + static_cast<int64_t>(call.rows) * batch.codebooks * call.codes;
  for (int i = threadIdx.x; i < call.codes; i += threads) {
    float score = call.guided ? guided_score(with[i], without[i], settings.guidance) : with[i];
    if (!settings.greedy) score = __fdiv_rn(score, settings.temperature);
    values[i] = score;
  }
  __syncthreads();
  const float2 range = range_of(values, call.codes, scratch);
  if (scratch.bad || !isfinite(range.y)) {
    if (threadIdx.x == 0) *batch.failed = 1, *token = 0;
    return;
  }
  const bool some = settings.top_k > 0 && settings.top_k < call.codes;
  const float bound = settings.greedy ? range.y
                      : some
                          ? bound_of(values, call.codes, settings.top_k, range.x, range.y, scratch)
                          : range.y - 22.f;
  for (int i = threadIdx.x; i < call.codes; i += threads) {
    if (!(values[i] >= bound)) continue;
    candidates[atomicAdd(&scratch.candidates, 1)] = i;
    weights[i] = settings.greedy ? 1 : draw_weight(values[i] - range.y);
  }
  __syncthreads();
  const int count = scratch.candidates;
  if (settings.greedy) {  // the first of the equal largest
    if (threadIdx.x >= 32) return;
    int least = call.codes;
    for (int i = threadIdx.x; i < count; i += 32) least = min(least, candidates[i]);
    for (int offset = 16; offset > 0; offset /= 2)
      least = min(least, __shfl_xor_sync(~0u, least, offset));
    if (threadIdx.x == 0) *token = least;
    return;
  }
  // What stays is decided for all before any weight is taken away: a bit for each of a thread's.
  uint64_t goes = 0;
  if (some) {
    int round = 0;
    for (int c = threadIdx.x; c < count; c += threads, ++round) {
      const float mine = values[candidates[c]];
      int larger = 0;
      for (int j = 0; j < count; ++j) larger += values[candidates[j]] > mine;
      if (larger >= settings.top_k) goes |= uint64_t{1} << round;
    }
    __syncthreads();
    for (int c = threadIdx.x, r = 0; c < count; c += threads, ++r)
      if (goes >> r & 1) weights[candidates[c]] = 0;
    __syncthreads();
  }
  if (settings.top_p < 1) {
    uint64_t mine = 0, before = 0;
    for (int c = threadIdx.x; c < count; c += threads) mine += weights[candidates[c]];
    const double share =
        settings.top_p * static_cast<double>(sum_and_before(mine, before, scratch));
    goes = 0;
    int round = 0;
    for (int c = threadIdx.x; c < count; c += threads, ++round) {
      const float value = values[candidates[c]];
      uint64_t above = 0;
      for (int j = 0; j < count; ++j)
        above += values[candidates[j]] > value ? weights[candidates[j]] : 0;
      if (value < range.y && !(static_cast<double>(above) < share)) goes |= uint64_t{1} << round;
    }
    __syncthreads();
    for (int c = threadIdx.x, r = 0; c < count; c += threads, ++r)
      if (goes >> r & 1) weights[candidates[c]] = 0;
    __syncthreads();
  }
  const int64_t step = settings.first + column - 1;
  pick(weights, call.codes,
       draw_bits(call.keys[clip], static_cast<uint64_t>(step) * batch.codebooks + codebook), token,
       scratch);
}

}  // namespace

void launch_music_begin(const MusicBegin& call, cudaStream_t stream) {
  const WorkNote note("tandem::music_begin", 0,
                      4.0 * call.rows * call.width * (call.batch.codebooks + 2));
  launch_in_turn(music_begin, dim3(call.rows), dim3(threads), 0, stream, call);
}

void launch_music_draw(const MusicDraw& call, cudaStream_t stream) {
  TORCH_CHECK(call.codes <= 64 * threads, "a vocabulary of ", call.codes, " codes; at most ",
              64 * threads);
  const size_t shared = static_cast<size_t>(call.codes) * 12;
  if (shared > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(music_draw, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  }
  const WorkNote note("tandem::music_draw", 0,
                      4.0 * call.rows * (call.guided ? 2 : 1) * call.batch.codebooks * call.codes);
  launch_in_turn(music_draw, dim3(call.rows, call.batch.codebooks), dim3(threads), shared, stream,
                 call);
}

}  // namespace tandem
