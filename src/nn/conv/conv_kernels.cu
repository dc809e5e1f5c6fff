// A block holds its stretch of the input in shared memory, activated and rounded to half, and runs
// every tap over it; weights come packed for the tensor cores, straight from the second-level
// cache. The order of the sum is (chunk of channels, tap, channel) in all tiles.
#include "nn/conv/conv_kernels.h"

#include <algorithm>

#include "nn/conv/conv_math.cuh"
#include "nn/rows/launch.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int warps = 8, threads = 32 * warps;
constexpr int warp_columns = 32, column_tiles = 4;  // of 8

// Rows [first, first + rows) and channels [chunk, chunk + count) of the clip's input.
__device__ void load_stretch(const ConvCall& call, const ConvClip& clip, int first, int rows,
                             int chunk, int count, int pitch, __half* stretch) {
  const int pieces = count / 8;  // of 8 channels
  for (int i = threadIdx.x; i < rows * pieces; i += threads) {
    const int row = i / pieces, channel = i % pieces * 8;
    const int source = clip.input_row(call, first + row);
    uint4 out = {0, 0, 0, 0};
    if (source >= 0) {
      const int64_t at = clip.input_at(call, source, chunk + channel);
      if (call.half_in) {
        out = *reinterpret_cast<const uint4*>(static_cast<const __half*>(call.half_in) + at);
      } else {
        const auto* in = reinterpret_cast<const float4*>(call.in + at);
        const uint2 a = half_quad(activated(call, in[0])), b = half_quad(activated(call, in[1]));
        out = {a.x, a.y, b.x, b.y};
      }
    }
    *reinterpret_cast<uint4*>(stretch + row * pitch + channel) = out;
  }
}

// `tiles` pairs of columns of one row: everything that is added is read first, so that the ways to
// memory overlap. `half` 1: the row eight below.
template <int half, int tiles>
__device__ void put_row(const ConvCall& call, const ConvClip& clip, int t, int first_column,
                        const float (&sums)[tiles][4]) {
  const int width = call.columns / call.rate;
  const float* own_bias = clip.own_bias(call);
  int64_t at[tiles];
  float2 bias[tiles], base[tiles] = {}, earlier[tiles] = {};
#pragma unroll
  for (int n = 0; n < tiles; ++n) {
    const int column = first_column + n * 8, phase = call.rate > 1 ? column / width : 0;
    const int channel = column - phase * width;
    at[n] = clip.result_at(call, t + 8 * half, phase);
    bias[n] = *reinterpret_cast<const float2*>(call.bias + channel);
    if (own_bias) bias[n].x += own_bias[channel], bias[n].y += own_bias[channel + 1];
    if (at[n] < 0) continue;
    at[n] += channel;
    if (call.residual) base[n] = *reinterpret_cast<const float2*>(call.residual + at[n]);
    if (call.accumulate) earlier[n] = *reinterpret_cast<const float2*>(call.out + at[n]);
  }
#pragma unroll
  for (int n = 0; n < tiles; ++n) {
    if (at[n] < 0) continue;
    const float2 y = {
        (sums[n][2 * half] + (bias[n].x + base[n].x)) * call.scale + earlier[n].x,
        (sums[n][2 * half + 1] + (bias[n].y + base[n].y)) * call.scale + earlier[n].y};
    if (call.half_out) {
      *reinterpret_cast<uint32_t*>(static_cast<__half*>(call.half_out) + at[n]) =
          half_quad(activated(call, {y.x, y.y, 0, 0})).x;
    } else {
      *reinterpret_cast<float2*>(call.out + at[n]) = y;
    }
  }
}

// A warp makes 16 * row_tiles positions by 32 columns; `across` warps stand side by side in
// columns.
template <int row_tiles, int across>
__global__ void __launch_bounds__(threads, row_tiles == 2 ? 3 : 2) conv(const ConvCall call) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* stretch = reinterpret_cast<__half*>(shared);
  constexpr int along = warps / across, tile_rows = 16 * row_tiles * along;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  release_successor();
  await_predecessor();
  const ConvClip clip(call, blockIdx.z);
  const int first_row = call.first_row + blockIdx.x * tile_rows;
  if (first_row >= clip.end(call)) return;
  const int rows = tile_rows + (call.taps - 1) * call.dilation;
  const int chunk_size = min(call.channels, most_chunk), pitch = chunk_size + 8;
  const int my_row = warp / across * 16 * row_tiles;
  const int column_tile = (blockIdx.y * across + warp % across) * column_tiles;  // the warp's first
  const int all_column_tiles = call.columns / 8;
  const auto* weight = static_cast<const uint4*>(call.weight);

  float sums[row_tiles][column_tiles][4] = {};
  for (int chunk = 0; chunk < call.channels; chunk += chunk_size) {
    if (chunk > 0) __syncthreads();
    const int count = min(chunk_size, call.channels - chunk);
    load_stretch(call, clip, first_row + call.first, rows, chunk, count, pitch, stretch);
    __syncthreads();
    const int blocks = count / 32, steps = call.taps * blocks;
    const auto fetch = [&](int step, uint4(&b)[column_tiles]) {
      const int tap = step / blocks, block = chunk / 32 + step % blocks;
      const uint4* from =
          weight +
          ((static_cast<int64_t>(tap) * (call.channels / 32) + block) * all_column_tiles +
           column_tile) *
              32 +
          lane;
#pragma unroll
      for (int n = 0; n < column_tiles; ++n) b[n] = __ldg(from + n * 32);
    };
    const auto multiply = [&](int step, const uint4(&b)[column_tiles]) {
      const int tap = step / blocks, block = step % blocks;
      const __half* from =
          stretch + (my_row + lane % 16 + tap * call.dilation) * pitch + block * 32 + lane / 16 * 8;
#pragma unroll
      for (int m = 0; m < row_tiles; ++m) {
        const uint4 low = load_matrix(from + m * 16 * pitch);
        const uint4 high = load_matrix(from + m * 16 * pitch + 16);
#pragma unroll
        for (int n = 0; n < column_tiles; ++n) {
          multiply_tile<__half>(sums[m][n], low, b[n].x, b[n].y);
          multiply_tile<__half>(sums[m][n], high, b[n].z, b[n].w);
        }
      }
    };
    uint4 even[column_tiles], odd[column_tiles];
    fetch(0, even);
    for (int step = 0; step < steps; step += 2) {
      if (step + 1 < steps) fetch(step + 1, odd);
      multiply(step, even);
      if (step + 1 >= steps) break;
      if (step + 2 < steps) fetch(step + 2, even);
      multiply(step + 1, odd);
    }
  }
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
    const int t = first_row + my_row + m * 16 + lane / 4, column = column_tile * 8 + lane % 4 * 2;
    put_row<0>(call, clip, t, column, sums[m]);
    put_row<1>(call, clip, t, column, sums[m]);
  }
}

template <int row_tiles, int across>
void launch_tiles(const ConvCall& call, cudaStream_t stream) {
  constexpr int tile_rows = 16 * row_tiles * (warps / across);
  const size_t shared = sizeof(__half) * (tile_rows + (call.taps - 1) * call.dilation) *
                        (std::min(call.channels, most_chunk) + 8);
  if (shared > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(conv<row_tiles, across>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  }
  const dim3 grid((call.rows + tile_rows - 1) / tile_rows, call.columns / (warp_columns * across),
                  call.clips);
  launch_in_turn(conv<row_tiles, across>, grid, dim3(threads), shared, stream, call);
}

template <int across>
void launch_across(const ConvCall& call, cudaStream_t stream) {
  constexpr int large = across == 4 ? 4 : 2;
  const int64_t tile_rows = 16 * large * (warps / across);
  const int64_t blocks = (call.rows + tile_rows - 1) / tile_rows *
                         (call.columns / (warp_columns * across)) * call.clips;
  // Small tiles where large ones would leave the GPU empty.
  blocks >= 200 ? launch_tiles<large, across>(call, stream) : launch_tiles<1, across>(call, stream);
}

// Where the lengths are known to the device alone, nothing is told.
WorkNote note_of(const ConvCall& call) {
  const double weights = static_cast<double>(call.taps) * call.channels * call.columns;
  const double rows = static_cast<double>(call.clips) * call.rows;
  const double written = call.half_out ? 2 : call.accumulate ? 8 : 4;
  const double bytes = 2 * weights + rows * call.channels * (call.half_in ? 2 : 4) +
                       rows * call.columns * ((call.residual ? 4 : 0) + written);
  return {"tandem::conv", call.lengths ? 0 : 2 * rows * weights, call.lengths ? 0 : bytes};
}

}  // namespace

void launch_conv(const ConvCall& call, cudaStream_t stream) {
  const WorkNote note = note_of(call);
  if (call.hopper) {
    launch_hopper_conv(call, stream);
  } else if (call.columns % 128 == 0) {
    launch_across<4>(call, stream);
  } else if (call.columns % 64 == 0) {
    launch_across<2>(call, stream);
  } else {
    launch_across<1>(call, stream);
  }
}

bool conv_pair_is_one(const ConvCall& first, const ConvCall& second) {
  const auto plain = [](const ConvCall& call) {
    return call.hopper && call.channels == call.columns && call.rate == 1 && call.first_row == 0 &&
           !call.reflect && !call.clip_bias;
  };
  const int columns = first.columns;
  return plain(first) && plain(second) && second.columns == columns &&
         (columns == 32 || columns == 64 || columns == 128) && second.taps == first.taps &&
         first.taps <= 32;
}

void launch_conv_pair(const ConvCall& first, const ConvCall& second, cudaStream_t stream) {
  if (conv_pair_is_one(first, second)) {
    launch_hopper_conv_pair(first, second, stream);
  } else {
    launch_conv(first, stream);
    launch_conv(second, stream);
  }
}

}  // namespace tandem
