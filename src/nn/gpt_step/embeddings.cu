// Inputs of the first layer, and the gradients of the tables they come from: a block a token (or
// position) adds its places in their order, so no two blocks write the same row.
#include <c10/cuda/CUDAException.h>

#include "nn/gpt_step/gpt_rows.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 128;

__global__ void __launch_bounds__(threads) embed(const EmbedCall call) {
  const int place = blockIdx.x, width = call.width;
  const int token = call.packing.token[place], position = call.packing.position[place];
  const uint64_t key = call.dropout.threshold ? dropout_key(call.dropout) : 0;
  for (int column = 8 * threadIdx.x; column < width; column += 8 * threads) {
    Eight x{};
    if (token <= -2) {
      x = load_eight(call.latents + static_cast<int64_t>(-2 - token) * width + column);
    } else if (token >= 0) {
      const bool text = token < call.text_tokens;
      const bf16* table =
          text ? call.text_table + static_cast<int64_t>(token) * width
               : call.audio_table + static_cast<int64_t>(token - call.text_tokens) * width;
      const bf16* positions = text ? call.text_positions : call.audio_positions;
      x = load_eight(table + column);
      const Eight y = load_eight(positions + static_cast<int64_t>(position) * width + column);
#pragma unroll
      for (int i = 0; i < 8; ++i) x.v[i] += y.v[i];
    }
    if (call.dropout.threshold) drop_eight(x, call.dropout, key, place, column, width);
    store_eight(call.out + static_cast<int64_t>(place) * width + column, x);
  }
}

__global__ void write_mask(const Dropout dropout, float* out, int places, int width) {
  const int64_t at = 8 * (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (at >= static_cast<int64_t>(places) * width) return;
  Eight one{{1, 1, 1, 1, 1, 1, 1, 1}};
  drop_eight(one, dropout, dropout_key(dropout), static_cast<int>(at / width),
             static_cast<int>(at % width), width);
  store_eight(out + at, one);
}

// Adds rows of the gradient, each thread its columns, one row after the other.
struct RowSum {
  Eight sum[widest / (8 * threads)] = {};
  __device__ void add(const bf16* row, int width) {
#pragma unroll
    for (int j = 0; j < widest / (8 * threads); ++j) {
      const int column = 8 * (threadIdx.x + j * threads);
      if (column >= width) break;
      const Eight x = load_eight(row + column);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[j].v[i] += x.v[i];
    }
  }
  __device__ void add_to(float* row, int width) const {
#pragma unroll
    for (int j = 0; j < widest / (8 * threads); ++j) {
      const int column = 8 * (threadIdx.x + j * threads);
      if (column >= width) break;
      Eight x = load_eight(row + column);
#pragma unroll
      for (int i = 0; i < 8; ++i) x.v[i] += sum[j].v[i];
      store_eight(row + column, x);
    }
  }
};

// One token of either table: its places are found in order, 128 looked at a time.
__device__ void gather_token(const EmbedBackwardCall& call, int token) {
  __shared__ int found[threads], warp_count[threads / 32];
  int left = call.packing.counts[token];
  if (left == 0) return;
  RowSum sum;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int first = 0; left > 0 && first < call.places; first += threads) {
    const int place = first + static_cast<int>(threadIdx.x);
    const bool mine = place < call.places && call.packing.token[place] == token;
    const uint32_t votes = __ballot_sync(~0u, mine);
    if (lane == 0) warp_count[warp] = __popc(votes);
    __syncthreads();
    int before = 0, count = 0;
#pragma unroll
    for (int w = 0; w < threads / 32; ++w) {
      if (w < warp) before += warp_count[w];
      count += warp_count[w];
    }
    if (mine) found[before + __popc(votes & ((1u << lane) - 1))] = place;
    __syncthreads();
    for (int i = 0; i < count; ++i)
      sum.add(call.gradient + static_cast<int64_t>(found[i]) * call.width, call.width);
    left -= count;
    __syncthreads();
  }
  float* row = token < call.text_tokens
                   ? call.text_table + static_cast<int64_t>(token) * call.width
                   : call.audio_table + static_cast<int64_t>(token - call.text_tokens) * call.width;
  sum.add_to(row, call.width);
}

// A position of one segment: the same place of every row, rows in order.
__device__ void gather_position(const EmbedBackwardCall& call, bool text, int position) {
  RowSum sum;
  for (int row = 0; row < call.rows; ++row) {
    const int slot = text ? row * (call.texts + 1) + position
                          : call.rows * (call.texts + 1) + row * (call.sounds + 4) + position;
    const int place = call.packing.place[slot];
    if (place >= 0) sum.add(call.gradient + static_cast<int64_t>(place) * call.width, call.width);
  }
  sum.add_to((text ? call.text_positions : call.audio_positions) +
                 static_cast<int64_t>(position) * call.width,
             call.width);
}

// The places of the text's STOP have no slot; they follow the row's last text slot.
__device__ void gather_stops(const EmbedBackwardCall& call) {
  for (int row = 0; row < call.rows; ++row) {
    for (int at = call.texts; at >= 0; --at) {
      const int place = call.packing.place[row * (call.texts + 1) + at];
      if (place < 0) continue;
      RowSum sum;
      sum.add(call.gradient + static_cast<int64_t>(place + 1) * call.width, call.width);
      sum.add_to(call.text_positions + static_cast<int64_t>(at + 1) * call.width, call.width);
      break;
    }
  }
}

__global__ void __launch_bounds__(threads) embed_backward(const EmbedBackwardCall call) {
  const int tokens = call.text_tokens + call.audio_tokens;
  int job = blockIdx.x;
  if (job < tokens) return gather_token(call, job);
  job -= tokens;
  if (job <= call.texts) return gather_position(call, true, job);
  job -= call.texts + 1;
  gather_position(call, false, job);
}
__global__ void __launch_bounds__(threads) stops_backward(const EmbedBackwardCall call) {
  gather_stops(call);
}

__global__ void __launch_bounds__(threads) latents_backward(const EmbedBackwardCall call) {
  const int row = blockIdx.x / call.latents_a_row, at = blockIdx.x % call.latents_a_row;
  const int place = call.packing.starts[row] + at;
  const bool there = place < call.packing.starts[row + 1];
  for (int column = 8 * threadIdx.x; column < call.width; column += 8 * threads) {
    Eight x{};
    if (there) x = load_eight(call.gradient + static_cast<int64_t>(place) * call.width + column);
    store_eight(call.latents + static_cast<int64_t>(blockIdx.x) * call.width + column, x);
  }
}

}  // namespace

void launch_embed(const EmbedCall& call, cudaStream_t stream) {
  const WorkNote note("tandem::embed", 0, 6.0 * call.places * call.width);
  embed<<<call.places, threads, 0, stream>>>(call);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void launch_write_mask(const Dropout& dropout, float* out, int places, int width,
                       cudaStream_t stream) {
  const int64_t eights = static_cast<int64_t>(places) * width / 8;
  write_mask<<<static_cast<unsigned>((eights + 255) / 256), 256, 0, stream>>>(dropout, out, places,
                                                                              width);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void launch_embed_backward(const EmbedBackwardCall& call, cudaStream_t stream) {
  const int jobs = call.text_tokens + call.audio_tokens + call.texts + 1 + call.sounds + 4;
  embed_backward<<<jobs, threads, 0, stream>>>(call);
  if (call.reads_stop) stops_backward<<<1, threads, 0, stream>>>(call);
  if (call.latents_a_row > 0)
    latents_backward<<<call.rows * call.latents_a_row, threads, 0, stream>>>(call);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
