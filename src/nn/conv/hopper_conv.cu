// Convolutions, and two of them at once, by Hopper's warp-group products.
#include "nn/conv/hopper_conv_tile.cuh"
#include "nn/rows/launch.cuh"

namespace tandem {
namespace {

struct OneConv {
  ConvCall call;
  int slots;
};

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::resident) hopper_conv(const OneConv what) {
  extern __shared__ __align__(128) unsigned char shared[];
  const ConvCall& call = what.call;
  release_successor();
  const ConvClip clip(call, blockIdx.z);  // lengths are there before the first layer starts
  const int first_row = call.first_row + blockIdx.x * Tile::rows;
  if (first_row >= clip.end(call)) return await_predecessor();
  const int first_column = blockIdx.y * Tile::columns;
  auto weights = ring_of<Tile::columns>(call, what.slots, first_column, shared, nullptr);
  if (threadIdx.x == 0) weights.start(Tile::threads / 32);
  await_predecessor();

  unsigned char* stretch = shared + what.slots * slot_bytes;
  const int width = call.columns / call.rate, phase = first_column / width;
  const int channel = first_column - phase * width;
  const float* own_bias = clip.own_bias(call);
  typename Tile::Sums sums;
  start_sums<Tile>(sums, call.bias + channel, own_bias ? own_bias + channel : nullptr);
  const int rows = Tile::rows + (call.taps - 1) * call.dilation;
  for (int chunk = 0; chunk < call.channels; chunk += most_chunk) {
    if (chunk > 0) __syncthreads();
    const int pieces = min(most_chunk, call.channels - chunk) / 8;
    const int pitch = stretch_pitch(rows, pieces);
    load_stretch<Tile::threads>(call, clip, first_row + call.first, rows, chunk, pieces, pitch,
                                stretch);
    add_taps<Tile>(sums, stretch, pitch, call.dilation, pieces, weights);
  }
#pragma unroll
  for (int s = 0; s < Tile::sets; ++s)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t at = clip.result_at(call, first_row + Tile::row_of(s, half), phase);
      put_row<Tile::columns>(call, at < 0 ? at : at + channel, sums[s], half);
    }
}

struct TwoConvs {
  ConvCall first, second;
  int slots;
};

// As many channels as columns; what is between the two convolutions takes the place of the first
// one's input. Of the tile's rows those are kept that the second's taps do not reach beyond.
template <class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::resident)
    hopper_conv_pair(const TwoConvs what) {
  extern __shared__ __align__(128) unsigned char shared[];
  const ConvCall &first = what.first, &second = what.second;
  release_successor();
  const ConvClip clip(first, blockIdx.z);
  const int kept_rows = Tile::rows - (second.taps - 1), first_row = blockIdx.x * kept_rows;
  if (first_row >= clip.end(first)) return await_predecessor();
  auto weights = ring_of<Tile::columns>(first, what.slots, 0, shared, second.weight);
  if (threadIdx.x == 0) weights.start(Tile::threads / 32);
  await_predecessor();

  unsigned char* stretch = shared + what.slots * slot_bytes;
  constexpr int pieces = Tile::columns / 8;
  const int rows = Tile::rows + (first.taps - 1) * first.dilation;
  const int pitch = stretch_pitch(rows, pieces);
  const int inner_row = first_row + second.first;  // the first of those between
  typename Tile::Sums sums;
  start_sums<Tile>(sums, first.bias, nullptr);
  load_stretch<Tile::threads>(first, clip, inner_row + first.first, rows, 0, pieces, pitch,
                              stretch);
  add_taps<Tile>(sums, stretch, pitch, first.dilation, pieces, weights);
  __syncthreads();
#pragma unroll
  for (int s = 0; s < Tile::sets; ++s)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = Tile::row_of(s, half), t = inner_row + row;
      const bool real = t >= 0 && t < clip.length;
#pragma unroll
      for (int n = 0; n < Tile::columns / 8; ++n) {
        const float4 y = {sums[s][4 * n + 2 * half], sums[s][4 * n + 2 * half + 1], 0, 0};
        *reinterpret_cast<uint32_t*>(stretch + (n * pitch + row) * 16 + threadIdx.x % 4 * 4) =
            real ? half_quad(activated(first, y)).x : 0;
      }
    }
  show_to_products();
  __syncthreads();
  start_sums<Tile>(sums, second.bias, nullptr);
  add_taps<Tile>(sums, stretch, pitch, second.dilation, pieces, weights);
#pragma unroll
  for (int s = 0; s < Tile::sets; ++s)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = Tile::row_of(s, half);
      put_row<Tile::columns>(
          second, row < kept_rows ? clip.result_at(second, first_row + row, 0) : -1, sums[s], half);
    }
}

constexpr int enough_blocks = 200;  // fewer would leave the GPU empty

template <class Arguments>
void launch(void (*kernel)(Arguments), dim3 grid, int threads, int shared, cudaStream_t stream,
            const Arguments& arguments) {
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  launch_in_turn(kernel, grid, dim3(static_cast<unsigned>(threads)), static_cast<size_t>(shared),
                 stream, arguments);
}

int64_t blocks_of(const ConvCall& call, int tile_rows, int columns) {
  return static_cast<int64_t>((call.rows + tile_rows - 1) / tile_rows) * (call.columns / columns) *
         call.clips;
}

template <class Tile>
void launch_tile(const ConvCall& call, int slots, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((call.rows + Tile::rows - 1) / Tile::rows),
                  static_cast<unsigned>(call.columns / Tile::columns),
                  static_cast<unsigned>(call.clips));
  const int rows = Tile::rows + (call.taps - 1) * call.dilation;
  launch<OneConv>(hopper_conv<Tile>, grid, Tile::threads,
                  slots * slot_bytes + stretch_bytes(rows, call.channels), stream, {call, slots});
}

template <class Tile>
void launch_pair_tile(const ConvCall& first, const ConvCall& second, int slots,
                      cudaStream_t stream) {
  const int kept_rows = Tile::rows - (second.taps - 1);
  const dim3 grid(static_cast<unsigned>((first.rows + kept_rows - 1) / kept_rows), 1,
                  static_cast<unsigned>(first.clips));
  const int rows = Tile::rows + (first.taps - 1) * first.dilation;
  launch<TwoConvs>(hopper_conv_pair<Tile>, grid, Tile::threads,
                   slots * slot_bytes + stretch_bytes(rows, first.channels), stream,
                   {first, second, slots});
}

using Wide = ConvTile<128, 2, 1, 2>;
using Middle = ConvTile<64, 2, 2, 2>;
using Narrow = ConvTile<32, 1, 4, 4>;
template <int columns>
using Small = ConvTile<columns, 1, 1, columns == 128 ? 3 : 4>;

// Large tiles, or small ones where large ones would be too few.
template <class Large>
void launch_pair(const ConvCall& first, const ConvCall& second, int slots, cudaStream_t stream) {
  blocks_of(first, Large::rows, Large::columns) >= enough_blocks
      ? launch_pair_tile<Large>(first, second, slots, stream)
      : launch_pair_tile<Small<Large::columns>>(first, second, slots, stream);
}

}  // namespace

bool hopper_conv_runs() { return is_hopper(); }

void launch_hopper_conv(const ConvCall& call, cudaStream_t stream) {
  const int width = call.columns / call.rate;  // a block's columns are of one phase
  if (width % 128 == 0 && blocks_of(call, Wide::rows, 128) >= enough_blocks) {
    launch_tile<Wide>(call, 3, stream);
  } else if (width % 64 == 0 && blocks_of(call, Middle::rows, 64) >= enough_blocks) {
    launch_tile<Middle>(call, 2, stream);
  } else if (blocks_of(call, Narrow::rows, 32) >= enough_blocks) {
    launch_tile<Narrow>(call, 2, stream);
  } else {
    launch_tile<Small<32>>(call, 2, stream);
  }
}

void launch_hopper_conv_pair(const ConvCall& first, const ConvCall& second, cudaStream_t stream) {
  switch (first.columns) {
    case 128: return launch_pair<Wide>(first, second, 3, stream);
    case 64: return launch_pair<Middle>(first, second, 2, stream);
    default: return launch_pair<Narrow>(first, second, 2, stream);
  }
}

}  // namespace tandem
