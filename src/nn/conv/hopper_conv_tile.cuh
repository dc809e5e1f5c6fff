// A tile of a convolution by Hopper's warp-group products. A block's stretch of the input lies in
// shared memory as [channel / 8][row][8]: the rows a tap hears begin further on, nothing is moved.
// The weights pass by in a ring. The order of the sum is (bias, chunk of channels, tap, channel) in
// all tiles.
#pragma once

#include <algorithm>

#include "nn/conv/conv_math.cuh"
#include "nn/conv/hopper_ring.cuh"
#include "nn/gpt_step/hopper_tiles.cuh"

namespace tandem {

// `groups` warp groups, each of which makes `sets` times 64 rows by `columns` columns;
// `resident` blocks fit on a multiprocessor.
template <int columns_, int groups_, int sets_, int resident_>
struct ConvTile {
  static constexpr int columns = columns_, groups = groups_, sets = sets_, resident = resident_;
  static constexpr int threads = groups * warpgroup_threads, rows = 64 * groups * sets;
  using Sums = float[sets][columns / 2];

  // Of value `half` of a set: 1 is the row eight below.
  __device__ static int row_of(int set, int half) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return (warp / 4 * sets + set) * 64 + warp % 4 * 16 + lane / 4 + 8 * half;
  }
};

// Rows of 16 bytes from 8 channels to the next 8: stores of neighbouring threads go to different
// banks.
__host__ __device__ constexpr int stretch_pitch(int rows, int pieces) {
  const int wanted = pieces == 4 ? 2 : 1;
  return rows + (wanted - rows % 8 + 8) % 8;
}
constexpr int stretch_bytes(int rows, int channels) {
  const int pieces = std::min(channels, most_chunk) / 8;
  return 16 * stretch_pitch(rows, pieces) * pieces;
}

// Rows [first, first + rows) and `pieces` times 8 channels from `chunk` on of the clip's input.
template <int threads>
__device__ inline void load_stretch(const ConvCall& call, const ConvClip& clip, int first, int rows,
                                    int chunk, int pieces, int pitch, unsigned char* stretch) {
  const int step = threads / pieces, piece = threadIdx.x % pieces;
  int row = threadIdx.x / pieces;
  if (row >= step) row = rows;  // one of the threads that are too many
  const int channel = chunk + piece * 8;
  unsigned char* to = stretch + piece * pitch * 16;
  if (call.half_in) {
    const auto* in = static_cast<const __half*>(call.half_in);
    for (; row < rows; row += step) {
      const int source = clip.input_row(call, first + row);
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to + row * 16)),
          "l"(in + clip.input_at(call, max(source, 0), channel)), "r"(source < 0 ? 0 : 16)
          : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  } else {
    constexpr int batch = 4;  // asked for before any is stored
    for (; row < rows; row += batch * step) {
      float4 low[batch], high[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const int source = clip.input_row(call, first + row + i * step);
        low[i] = high[i] = {0, 0, 0, 0};
        if (row + i * step >= rows || source < 0) continue;
        const auto* in =
            reinterpret_cast<const float4*>(call.in + clip.input_at(call, source, channel));
        low[i] = __ldg(in), high[i] = __ldg(in + 1);
      }
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        if (row + i * step >= rows) break;
        const uint2 a = half_quad(activated(call, low[i])), b = half_quad(activated(call, high[i]));
        *reinterpret_cast<uint4*>(to + (row + i * step) * 16) = {a.x, a.y, b.x, b.y};
      }
    }
  }
  show_to_products();
  __syncthreads();
}

// The compiler does not move what makes or uses the sums across this.
template <int sets, int count>
__device__ inline void settle_sums(float (&sums)[sets][count]) {
#pragma unroll
  for (int s = 0; s < sets; ++s)
#pragma unroll
    for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[s][i])::"memory");
}

template <class Tile>
__device__ inline void start_sums(typename Tile::Sums& sums, const float* bias,
                                  const float* own_bias) {
#pragma unroll
  for (int n = 0; n < Tile::columns / 8; ++n) {
    const int at = n * 8 + threadIdx.x % 4 * 2;
    float2 value = *reinterpret_cast<const float2*>(bias + at);
    if (own_bias) value.x += own_bias[at], value.y += own_bias[at + 1];
#pragma unroll
    for (int s = 0; s < Tile::sets; ++s) {
      sums[s][4 * n] = sums[s][4 * n + 2] = value.x;
      sums[s][4 * n + 1] = sums[s][4 * n + 3] = value.y;
    }
  }
  settle_sums(sums);
}

// All taps over the channels that are in shared memory.
template <class Tile>
__device__ inline void add_taps(typename Tile::Sums& sums, const unsigned char* stretch, int pitch,
                                int dilation, int pieces, WeightRing<Tile::columns>& weights) {
  using Ring = WeightRing<Tile::columns>;
  const int blocks = pieces / 4, steps = weights.taps * blocks;
  const int my_row = static_cast<int>(threadIdx.x) / warpgroup_threads * Tile::sets * 64;
  const uint64_t rows = side(shared_address(stretch) + my_row * 16, pitch * 16, 128);
  int tap = 0, block = 0, inside = 0, before = -1;
  uint32_t slot = 0;
  for (int step = 0; step < steps; ++step) {
    if (inside == 0) slot = weights.await_slot();
    // In units of 16 bytes.
    const uint64_t left = rows + static_cast<uint32_t>(tap * dilation + block * 4 * pitch);
    const uint64_t right = side(slot + inside * Ring::step_bytes, 128, 512);
    open_products();
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
      for (int s = 0; s < Tile::sets; ++s)
        multiply_sides(sums[s], left + static_cast<uint32_t>(2 * k * pitch + s * 64),
                       right + k * 16);
    close_products();
    await_products<1>();
    if (inside == 0 && before >= 0) weights.release(before);
    before = weights.read_slot;
    if (++block == blocks) block = 0, ++tap;
    if (++inside == Ring::slot_steps) inside = 0, weights.next_slot();
  }
  if (inside != 0) weights.next_slot();
  await_products<0>();
  weights.release(before);
  settle_sums(sums);
}

// One row of a warp's sums, to `at`; -1: nowhere. Lanes of a pair swap halves of neighbouring tiles
// of 8 columns, so that each has four columns side by side. What is added is read first, so that
// the ways to memory overlap.
template <int columns>
__device__ inline void put_row(const ConvCall& call, int64_t at, const float (&sums)[columns / 2],
                               int half) {
  constexpr int pairs = columns / 16, batch = pairs < 4 ? pairs : 4;
  const bool odd = threadIdx.x & 1, real = at >= 0;
  at += (odd ? 8 : 0) + (threadIdx.x & 2) * 2;
#pragma unroll
  for (int start = 0; start < pairs; start += batch) {
    float4 base[batch], earlier[batch];
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const int64_t place = at + (start + i) * 16;
      base[i] = earlier[i] = {0, 0, 0, 0};
      if (real && call.residual) base[i] = *reinterpret_cast<const float4*>(call.residual + place);
      if (real && call.accumulate) earlier[i] = *reinterpret_cast<const float4*>(call.out + place);
    }
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const int64_t place = at + (start + i) * 16;
      const float* tile = sums + (start + i) * 8 + 2 * half;
      const float2 low = {tile[0], tile[1]}, high = {tile[4], tile[5]};
      const float x = __shfl_xor_sync(~0u, odd ? low.x : high.x, 1);
      const float y = __shfl_xor_sync(~0u, odd ? low.y : high.y, 1);
      const float4 sum = odd ? float4{x, y, high.x, high.y} : float4{low.x, low.y, x, y};
      const float4 out = {(sum.x + base[i].x) * call.scale + earlier[i].x,
                          (sum.y + base[i].y) * call.scale + earlier[i].y,
                          (sum.z + base[i].z) * call.scale + earlier[i].z,
                          (sum.w + base[i].w) * call.scale + earlier[i].w};
      if (!real) continue;
      if (call.half_out) {
        *reinterpret_cast<uint2*>(static_cast<__half*>(call.half_out) + place) =
            half_quad(activated(call, out));
      } else {
        *reinterpret_cast<float4*>(call.out + place) = out;
      }
    }
  }
}

template <int columns>
__device__ inline WeightRing<columns> ring_of(const ConvCall& call, int slots, int first_column,
                                              unsigned char* shared, const void* next_weight) {
  __shared__ __align__(8) uint64_t barriers[2][most_slots];
  return {.ring = shared_address(shared),
          .full = shared_address(barriers[0]),
          .empty = shared_address(barriers[1]),
          .slots = slots,
          .channel_steps = call.channels / step_channels,
          .chunk_steps = min(call.channels, most_chunk) / step_channels,
          .taps = call.taps,
          .stride = static_cast<int64_t>(call.columns) * step_channels * 2,
          .weight = static_cast<const unsigned char*>(call.weight) +
                    static_cast<int64_t>(first_column) * step_channels * 2,
          .next_weight = static_cast<const unsigned char*>(next_weight)};
}

}  // namespace tandem
