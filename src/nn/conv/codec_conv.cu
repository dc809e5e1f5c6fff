// A block holds its stretch of the input in shared memory, rounded to half, and runs every tap over
// it; weights come packed for the tensor cores, straight from the second-level cache. The order of
// the sum is (chunk of channels, tap, channel) in all tiles.
#include <algorithm>

#include "nn/conv/codec_kernels.h"
#include "nn/conv/codec_math.cuh"
#include "nn/rows/launch.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int warps = 8, threads = 32 * warps;
constexpr int warp_columns = 32, column_tiles = 4;  // of 8
constexpr int most_chunk = 128;                     // channels in shared memory at once

// Rows [first, first + rows) and channels [chunk, chunk + count) of one clip's input.
__device__ void load_stretch(const CodecConv& call, int clip, int first, int rows, int chunk,
                             int count, int pitch, __half* stretch) {
  const int pieces = count / 8;  // of 8 channels
  const int reach = max(call.pad, call.taps - 1 - call.pad);
  for (int i = threadIdx.x; i < rows * pieces; i += threads) {
    const int row = i / pieces, channel = i % pieces * 8;
    int t = first + row;
    if (call.reflect) {
      t = codec_reflected(t, call.length, reach);
    } else if (t >= call.length) {
      t = -1;
    }
    uint4 out = {0, 0, 0, 0};
    if (t >= 0) {
      const int64_t at =
          clip * call.in_stride + static_cast<int64_t>(t) * call.channels + chunk + channel;
      if (call.half_in) {
        out = *reinterpret_cast<const uint4*>(static_cast<const __half*>(call.half_in) + at);
      } else {
        float4 a = *reinterpret_cast<const float4*>(call.in + at);
        float4 b = *reinterpret_cast<const float4*>(call.in + at + 4);
        if (call.elu_in) {
          a = {codec_elu(a.x), codec_elu(a.y), codec_elu(a.z), codec_elu(a.w)};
          b = {codec_elu(b.x), codec_elu(b.y), codec_elu(b.z), codec_elu(b.w)};
        }
        out = {half_pair<__half>(a.x, a.y), half_pair<__half>(a.z, a.w),
               half_pair<__half>(b.x, b.y), half_pair<__half>(b.z, b.w)};
      }
    }
    *reinterpret_cast<uint4*>(stretch + row * pitch + channel) = out;
  }
}

// Where a pair of neighbouring results goes; -1: nowhere.
__device__ int64_t pair_place(const CodecConv& call, int clip, int t, int column, int& channel) {
  channel = column;
  if (call.rate == 1) {
    if (t >= call.first_row + call.rows) return -1;
    return clip * call.out_stride + static_cast<int64_t>(t - call.first_row) * call.columns +
           column;
  }
  const int width = call.columns / call.rate, phase = column / width;
  channel = column % width;
  const int position = t * call.rate + phase - call.shift;
  if (position < 0 || position >= call.length * call.rate) return -1;
  return clip * call.out_stride + static_cast<int64_t>(position) * width + channel;
}

// Pairs of columns of one row: everything that is added is read first, so that the ways to memory
// overlap. `half` 1: the row eight below.
template <int half, int tiles>
__device__ void put_row(const CodecConv& call, int clip, int t, int first_column,
                        const float (&sums)[tiles][4]) {
  int64_t at[tiles];
  float2 bias[tiles], base[tiles] = {};
#pragma unroll
  for (int n = 0; n < tiles; ++n) {
    int channel = 0;
    at[n] = pair_place(call, clip, t + 8 * half, first_column + n * 8, channel);
    if (call.residual && at[n] >= 0)
      base[n] = *reinterpret_cast<const float2*>(call.residual + at[n]);
    bias[n] = *reinterpret_cast<const float2*>(call.bias + channel);
  }
#pragma unroll
  for (int n = 0; n < tiles; ++n) {
    if (at[n] < 0) continue;
    const float2 y = {sums[n][2 * half] + bias[n].x + base[n].x,
                      sums[n][2 * half + 1] + bias[n].y + base[n].y};
    if (call.half_out) {
      *reinterpret_cast<uint32_t*>(static_cast<__half*>(call.half_out) + at[n]) =
          half_pair<__half>(codec_elu(y.x), codec_elu(y.y));
    } else {
      *reinterpret_cast<float2*>(call.out + at[n]) = y;
    }
  }
}

// A warp makes 16 * row_tiles positions by 32 columns; `across` warps stand side by side in
// columns.
template <int row_tiles, int across>
__global__ void __launch_bounds__(threads, row_tiles == 2 ? 3 : 2)
    codec_conv(const CodecConv call) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* stretch = reinterpret_cast<__half*>(shared);
  constexpr int along = warps / across, tile_rows = 16 * row_tiles * along;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int clip = blockIdx.z;
  release_successor();
  await_predecessor();
  const int first_row = call.first_row + blockIdx.x * tile_rows;
  const int stretch_rows = tile_rows + call.taps - 1;
  const int chunk_size = min(call.channels, most_chunk), pitch = chunk_size + 8;
  const int my_row = warp / across * 16 * row_tiles;
  const int column_tile = (blockIdx.y * across + warp % across) * column_tiles;  // the warp's first
  const int all_column_tiles = call.columns / 8;
  const auto* weight = static_cast<const uint4*>(call.weight);

  float sums[row_tiles][column_tiles][4] = {};
  for (int chunk = 0; chunk < call.channels; chunk += chunk_size) {
    if (chunk > 0) __syncthreads();
    const int count = min(chunk_size, call.channels - chunk);
    load_stretch(call, clip, first_row - call.pad, stretch_rows, chunk, count, pitch, stretch);
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
          stretch + (my_row + lane % 16 + tap) * pitch + block * 32 + lane / 16 * 8;
#pragma unroll
      for (int m = 0; m < row_tiles; ++m) {
        const uint4 low = codec_load_tile(from + m * 16 * pitch);
        const uint4 high = codec_load_tile(from + m * 16 * pitch + 16);
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
void launch_tiles(const CodecConv& call, cudaStream_t stream) {
  constexpr int tile_rows = 16 * row_tiles * (warps / across);
  const size_t shared =
      sizeof(__half) * (tile_rows + call.taps - 1) * (std::min(call.channels, most_chunk) + 8);
  if (shared > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(codec_conv<row_tiles, across>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  }
  const dim3 grid((call.rows + tile_rows - 1) / tile_rows, call.columns / (warp_columns * across),
                  call.clips);
  launch_in_turn(codec_conv<row_tiles, across>, grid, dim3(threads), shared, stream, call);
}

template <int across>
void launch_across(const CodecConv& call, cudaStream_t stream) {
  constexpr int large = across == 4 ? 4 : 2;
  const int64_t tile_rows = 16 * large * (warps / across);
  const int64_t blocks = (call.rows + tile_rows - 1) / tile_rows *
                         (call.columns / (warp_columns * across)) * call.clips;
  // Small tiles where large ones would leave the GPU empty.
  blocks >= 200 ? launch_tiles<large, across>(call, stream) : launch_tiles<1, across>(call, stream);
}

}  // namespace

void launch_codec_conv(const CodecConv& call, cudaStream_t stream) {
  const double weights = static_cast<double>(call.taps) * call.channels * call.columns;
  const double rows = static_cast<double>(call.clips) * call.rows;
  const double given = rows * call.columns;
  const WorkNote note("tandem::codec_conv", 2 * rows * weights,
                      2 * weights + rows * call.channels * (call.half_in ? 2 : 4) +
                          given * ((call.residual ? 4 : 0) + (call.half_out ? 2 : 4)));
  if (call.columns % 128 == 0) {
    launch_across<4>(call, stream);
  } else if (call.columns % 64 == 0) {
    launch_across<2>(call, stream);
  } else {
    launch_across<1>(call, stream);
  }
}

}  // namespace tandem
