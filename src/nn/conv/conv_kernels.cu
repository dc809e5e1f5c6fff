// A block holds its stretch of the input in shared memory, with the leaky ReLU applied and rounded
// to half, and runs every tap over it; weights come packed for the tensor cores, straight from the
// second-level cache. The order of the sum is (chunk of channels, tap, channel) in all tiles.
#include <cuda_fp16.h>

#include <algorithm>

#include "nn/conv/conv_kernels.h"
#include "nn/rows/launch.cuh"
#include "nn/rows/row_math.cuh"

namespace tandem {
namespace {

constexpr int warps = 8, threads = 32 * warps;
constexpr int warp_columns = 32, column_tiles = 4;  // of 8
constexpr int most_chunk = 128;                     // channels in shared memory at once

__device__ float leaky(float x, float slope) { return x >= 0 ? x : x * slope; }

__device__ uint4 load_tile(const __half* from) {
  uint4 a;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a.x), "=r"(a.y), "=r"(a.z), "=r"(a.w)
               : "r"(address));
  return a;
}

// Rows [first, first + rows) and channels [chunk, chunk + count) of one clip's input.
__device__ void load_stretch(const ConvCall& call, int clip, int length, int first, int rows,
                             int chunk, int count, int pitch, __half* stretch) {
  const int pieces = count / 8;  // of 8 channels
  for (int i = threadIdx.x; i < rows * pieces; i += threads) {
    const int row = i / pieces, channel = i % pieces * 8;
    const int t = first + row;
    uint4 out = {0, 0, 0, 0};
    if (t >= 0 && t < length) {
      const int64_t at =
          (static_cast<int64_t>(clip) * call.in_rows + t) * call.channels + chunk + channel;
      if (call.half_in) {
        out = *reinterpret_cast<const uint4*>(static_cast<const __half*>(call.half_in) + at);
      } else {
        const float4 a = *reinterpret_cast<const float4*>(call.in + at);
        const float4 b = *reinterpret_cast<const float4*>(call.in + at + 4);
        out = {half_pair<__half>(leaky(a.x, call.slope), leaky(a.y, call.slope)),
               half_pair<__half>(leaky(a.z, call.slope), leaky(a.w, call.slope)),
               half_pair<__half>(leaky(b.x, call.slope), leaky(b.y, call.slope)),
               half_pair<__half>(leaky(b.z, call.slope), leaky(b.w, call.slope))};
      }
    }
    *reinterpret_cast<uint4*>(stretch + row * pitch + channel) = out;
  }
}

// Where a pair of neighbouring results goes; -1: nowhere.
__device__ int64_t pair_place(const ConvCall& call, int clip, int length, int t, int column,
                              int& channel) {
  const int width = call.columns / call.rate;
  int phase = 0;
  channel = column;
  if (call.rate > 1) {
    phase = column / width;
    channel = column % width;
  }
  const int position = t * call.rate + phase - call.shift;
  if (position < 0 || position >= length * call.rate) return -1;
  return (static_cast<int64_t>(clip) * call.out_rows + position) * width + channel;
}

__device__ float2 finished(const ConvCall& call, float2 y, float2 bias, float2 base,
                           float2 earlier) {
  y.x += bias.x + base.x, y.y += bias.y + base.y;
  y.x = y.x * call.scale + earlier.x, y.y = y.y * call.scale + earlier.y;
  return y;
}

// `tiles` pairs of columns of one row: everything that is added is read first, so that the ways to
// memory overlap. `half` 1: the row eight below.
template <int half, int tiles>
__device__ void put_row(const ConvCall& call, int clip, int length, int t, int first_column,
                        const float (&sums)[tiles][4]) {
  int64_t at[tiles];
  float2 bias[tiles], base[tiles] = {}, earlier[tiles] = {};
  const float* from = call.output == ConvOutput::add ? call.out : call.residual;
  const bool adds = call.output == ConvOutput::add || call.output == ConvOutput::mean;
#pragma unroll
  for (int n = 0; n < tiles; ++n) {
    int channel = 0;
    at[n] = pair_place(call, clip, length, t + 8 * half, first_column + n * 8, channel);
    if (adds && at[n] >= 0) base[n] = *reinterpret_cast<const float2*>(from + at[n]);
    if (call.accumulate && at[n] >= 0)
      earlier[n] = *reinterpret_cast<const float2*>(call.out + at[n]);
    bias[n] = *reinterpret_cast<const float2*>(call.bias + channel);
    if (call.clip_bias) {
      const float2 more = *reinterpret_cast<const float2*>(
          call.clip_bias + static_cast<int64_t>(clip) * (call.columns / call.rate) + channel);
      bias[n].x += more.x, bias[n].y += more.y;
    }
  }
#pragma unroll
  for (int n = 0; n < tiles; ++n) {
    if (at[n] < 0) continue;
    const float2 y =
        finished(call, {sums[n][2 * half], sums[n][2 * half + 1]}, bias[n], base[n], earlier[n]);
    if (call.output == ConvOutput::store_half) {
      *reinterpret_cast<uint32_t*>(static_cast<__half*>(call.half_out) + at[n]) =
          half_pair<__half>(leaky(y.x, call.out_slope), leaky(y.y, call.out_slope));
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
  const int clip = blockIdx.z;
  release_successor();
  await_predecessor();
  const int length = call.lengths[clip] * call.length_scale;
  const int first_row = blockIdx.x * tile_rows;
  // A transposed convolution has one more row: the last positions' second tap.
  if (first_row >= length + (call.rate > 1)) return;
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
    load_stretch(call, clip, length, first_row + call.first, rows, chunk, count, pitch, stretch);
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
        const uint4 low = load_tile(from + m * 16 * pitch);
        const uint4 high = load_tile(from + m * 16 * pitch + 16);
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
    put_row<0>(call, clip, length, t, column, sums[m]);
    put_row<1>(call, clip, length, t, column, sums[m]);
  }
}

template <int row_tiles, int across>
void launch_tiles(const ConvCall& call, cudaStream_t stream) {
  constexpr int tile_rows = 16 * row_tiles * (warps / across);
  const int positions = call.most_positions + (call.rate > 1);
  const size_t shared = sizeof(__half) * (tile_rows + (call.taps - 1) * call.dilation) *
                        (std::min(call.channels, most_chunk) + 8);
  if (shared > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(conv<row_tiles, across>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  }
  const dim3 grid((positions + tile_rows - 1) / tile_rows, call.columns / (warp_columns * across),
                  call.batch);
  launch_in_turn(conv<row_tiles, across>, grid, dim3(threads), shared, stream, call);
}

template <int across>
void launch_across(const ConvCall& call, cudaStream_t stream) {
  constexpr int large = across == 4 ? 4 : 2;
  const int64_t tile_rows = 16 * large * (warps / across);
  const int64_t blocks = (call.most_positions + tile_rows - 1) / tile_rows *
                         (call.columns / (warp_columns * across)) * call.batch;
  // Small tiles where large ones would leave the GPU empty.
  blocks >= 200 ? launch_tiles<large, across>(call, stream) : launch_tiles<1, across>(call, stream);
}

__global__ void __launch_bounds__(threads) wave(const WaveCall call) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* stretch = reinterpret_cast<float*>(shared);
  release_successor();
  await_predecessor();
  const int clip = blockIdx.y, length = call.lengths[clip] * call.length_scale;
  const int first = blockIdx.x * threads, reach = call.taps / 2, pitch = call.channels + 1;
  if (first >= length) return;
  const int rows = threads + call.taps - 1;
  for (int i = threadIdx.x; i < rows * call.channels; i += threads) {
    const int t = first - reach + i / call.channels, channel = i % call.channels;
    float value = 0;
    if (t >= 0 && t < length)
      value = leaky(call.in[(static_cast<int64_t>(clip) * call.rows + t) * call.channels + channel],
                    call.slope);
    stretch[i / call.channels * pitch + channel] = value;
  }
  __syncthreads();
  const int t = first + threadIdx.x;
  if (t >= length) return;
  float sum = call.bias;
  for (int tap = 0; tap < call.taps; ++tap)
    for (int channel = 0; channel < call.channels; ++channel)
      sum += call.weight[tap * call.channels + channel] *
             stretch[(threadIdx.x + tap) * pitch + channel];
  call.out[static_cast<int64_t>(clip) * call.rows + t] = tanhf(sum);
}

// One place of a linear interpolation without aligned corners: which two values, and the share of
// the second.
struct Between {
  int low, high;
  float share;
};
__device__ Between between(int index, float inverse_scale, int size) {
  const float source = fmaxf((static_cast<float>(index) + 0.5f) * inverse_scale - 0.5f, 0.f);
  const int low = min(static_cast<int>(source), size - 1);
  return {low, min(low + 1, size - 1), source - static_cast<float>(low)};
}

__global__ void frames(const FrameCall call) {
  release_successor();
  await_predecessor();
  const int clip = blockIdx.y, frame = blockIdx.x;
  if (frame >= call.counts[clip]) return;
  const int codes = call.codes[clip];
  const float* latents = call.latents[clip];
  const int middle = codes * call.frames_a_code;
  const Between outer = between(call.first[clip] + frame, call.inverse_ratio[clip], middle);
  const float inverse = 1.f / static_cast<float>(call.frames_a_code);
  const Between low = between(outer.low, inverse, codes),
                high = between(outer.high, inverse, codes);
  auto* out = static_cast<__half*>(call.half_out) +
              (static_cast<int64_t>(clip) * call.rows + frame) * call.channels;
  const auto mixed = [&](const Between& place, int i) {
    const float a = latents[static_cast<int64_t>(place.low) * call.width + i];
    const float b = latents[static_cast<int64_t>(place.high) * call.width + i];
    return (1.f - place.share) * a + place.share * b;
  };
  for (int i = threadIdx.x; i < call.channels; i += blockDim.x) {
    float value = 0;
    if (i < call.width) value = (1.f - outer.share) * mixed(low, i) + outer.share * mixed(high, i);
    out[i] = to_half<__half>(value);
  }
}

__global__ void told(const ToldCall call) {
  release_successor();
  await_predecessor();
  const int output = blockIdx.x * blockDim.x + threadIdx.x, clip = blockIdx.y;
  if (output >= call.outputs) return;
  float sum = call.bias[output];
  for (int i = 0; i < call.inputs; ++i)
    sum += call.in[clip * call.inputs + i] *
           call.weight[static_cast<int64_t>(i) * call.outputs + output];
  call.out[static_cast<int64_t>(clip) * call.outputs + output] = sum;
}

}  // namespace

void launch_told(const ToldCall& call, cudaStream_t stream) {
  launch_in_turn(told, dim3((call.outputs + 63) / 64, call.batch), dim3(64), 0, stream, call);
}

void launch_conv(const ConvCall& call, cudaStream_t stream) {
  if (call.columns % 128 == 0) {
    launch_across<4>(call, stream);
  } else if (call.columns % 64 == 0) {
    launch_across<2>(call, stream);
  } else {
    launch_across<1>(call, stream);
  }
}

void launch_wave(const WaveCall& call, cudaStream_t stream) {
  const dim3 grid((call.most_positions + threads - 1) / threads, call.batch);
  const size_t shared = sizeof(float) * (threads + call.taps - 1) * (call.channels + 1);
  if (shared > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(wave, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  }
  launch_in_turn(wave, grid, dim3(threads), shared, stream, call);
}

void launch_frames(const FrameCall& call, cudaStream_t stream) {
  launch_in_turn(frames, dim3(call.most_frames, call.batch), dim3(threads), 0, stream, call);
}

}  // namespace tandem
