// CUDA kernels for transformers that decode: they work on rows, one row a token of some sequence.
// A prompt is many rows of one sequence, a step of decoding one row of each; the same kernels serve
// both. What comes out for a row does not depend, to the last bit, on how many rows are computed
// beside it or where among them it stands: the sum over the inner dimension is always cut into the
// same eight parts and added in the same order.
//
// Shapes: R rows, D width, H heads, P places for sequences, C positions a place. Half values of
// rows are kept "packed" in the order in which tensor cores read them (packed_index).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "nn/checksum_words.h"

namespace tandem {

enum class RowHalf { fp16, bf16 };

// Whether the current CUDA device has the tensor cores these kernels use (compute capability 8.0).
bool half_kernels_run();

constexpr int row_block = 16;    // rows are padded to a multiple of this
constexpr int inner_block = 32;  // inner dimensions are padded to a multiple of this
TANDEM_HOST_DEVICE constexpr int head_pad(int head_width) { return head_width <= 64 ? 64 : 128; }
constexpr int64_t padded_to(int64_t value, int64_t block) {
  return (value + block - 1) / block * block;
}

// Where element (row, k) of packed rows with `inner` (padded) columns is kept.
TANDEM_HOST_DEVICE inline int64_t packed_index(int64_t row, int64_t k, int64_t inner) {
  const int64_t tile = (row / 16) * (inner / 16) + k / 16;
  const int64_t lane = (row % 8) * 4 + (k % 8) / 2;
  const int64_t part = (row % 16) / 8 + 2 * ((k % 16) / 8);
  return (tile * 32 + lane) * 8 + part * 2 + k % 2;
}

// Where element (k, n) of a packed weight with `inner` (padded) rows is kept. Columns are padded to
// a multiple of 8.
TANDEM_HOST_DEVICE inline int64_t packed_weight_index(int64_t k, int64_t n, int64_t inner) {
  const int64_t tile = (n / 8) * (inner / 32) + k / 32;
  const int64_t lane = (n % 8) * 4 + (k % 8) / 2;
  return (tile * 32 + lane) * 8 + ((k % 32) / 8) * 2 + k % 2;
}

struct RowNorm {
  const float* weight = nullptr;  // [D]
  const float* bias = nullptr;
};

// Which sequence and position each row is, and the sequences' keys and values.
struct RowPlaces {
  const int32_t* place = nullptr;     // [R], -1: the row is empty
  const int32_t* position = nullptr;  // [R]
};
struct KeyValues {
  void* keys = nullptr;  // [P, H, C, head_pad] half
  void* values = nullptr;
  int heads = 1, head_width = 64, positions = 0;
};

enum class RowOutput {
  store,            // out[r, n] = y
  add,              // out[r, n] += y
  gelu_tanh,        // packed_out = gelu(y), tanh form
  gelu_erf,         // packed_out = gelu(y), exact
  query_key_value,  // y is q | k | v: q / sqrt(head width) to out [R, H, head_pad], k and v to
                    // their places
};

// y = x W + bias for rows. x is packed rows, or, when `norm_input` is set (few rows), the
// layer norm of float rows, made on the way.
struct RowProduct {
  RowHalf half = RowHalf::fp16;
  int rows = 1;
  int inner = 0;    // padded
  int columns = 0;  // real
  const void* packed_rows = nullptr;
  const float* norm_input = nullptr;  // [R, norm_width]
  int norm_width = 0;
  RowNorm norm;
  const void* weight = nullptr;       // packed
  const float* bias = nullptr;        // [columns] or null
  const void* next_weight = nullptr;  // of the next product: fetched ahead into the cache
  int64_t next_bytes = 0;
  RowOutput output = RowOutput::store;
  float* out = nullptr;
  void* packed_out = nullptr;
  int packed_out_inner = 0;
  RowPlaces places;
  KeyValues cache;
};
void launch_row_product(const RowProduct& call, cudaStream_t stream);
// The same for many packed rows, on Hopper.
void launch_hopper_rows(const RowProduct& call, cudaStream_t stream);

// Packed rows of layer norms; eps 1e-5. With `second` its norm is applied after the first, and with
// `latents` the float result is kept there too ([P, latent_steps, D] at (place, step)).
struct RowNormCall {
  RowHalf half = RowHalf::fp16;
  int rows = 1, width = 0, inner = 0;
  const float* in = nullptr;            // [*, D]
  const int32_t* source_row = nullptr;  // [R]: which row of `in`; null: the same
  RowNorm first, second;
  void* packed_out = nullptr;
  float* latents = nullptr;
  int latent_steps = 0;
  const int32_t* latent_place = nullptr;  // [R], -1: none
  const int32_t* latent_step = nullptr;   // [R]
};
void launch_row_norm(const RowNormCall& call, cudaStream_t stream);

// softmax(q k) v of each row over positions 0 .. its own of its place.
struct RowAttention {
  RowHalf half = RowHalf::fp16;
  int rows = 1, inner = 0;         // inner: padded D
  const float* queries = nullptr;  // [R, H, head_pad], scaled
  RowPlaces places;
  KeyValues cache;
  // Keys and values but the rows' own are there before the kernel before this one has ended: every
  // place has one row. They are fetched while that one runs.
  bool early = false;
  void* packed_out = nullptr;
};
void launch_row_attention(const RowAttention& call, cudaStream_t stream);

// What is known of the sequence at a place while its codes are drawn; lives on the device.
struct DrawState {
  int32_t position;  // of the next row
  int32_t step;      // codes drawn
  int32_t code;      // the last one drawn
  int32_t active;    // 0: stopped
  int32_t max_steps;
  int32_t stop_code;
  int32_t top_k;  // 0: all
  int32_t greedy;
  float temperature, top_p, penalty;
  int32_t padding;
  uint64_t key;  // draws are counted from it
};

// For the rows of a step of decoding: place and position of each, and its input
// embedding[code] + position_embedding[step]. Rows of stopped places become empty.
struct RowBegin {
  int rows = 1, width = 0;
  const int32_t* row_place = nullptr;  // [R], -1: none
  DrawState* states = nullptr;         // [P]
  const float* embedding = nullptr;
  const float* position_embedding = nullptr;  // [places, D]
  float* x = nullptr;                         // [R, D]
  int32_t* place = nullptr;                   // [R]
  int32_t* position = nullptr;
  int32_t* step = nullptr;
  // The kernel behind it may start early: before it has awaited this one it reads weights only.
  // Otherwise places, positions, and keys and values of earlier steps are there when any later
  // kernel of the step starts (see RowAttention::early, MusicAttention::early).
  bool successor_awaits = false;
};
void launch_row_begin(const RowBegin& call, cudaStream_t stream);

// Draws one code a row: repetition penalty over the codes seen, temperature, top-k, top-p, draw.
// Moves the places' states on; `drawn[r]` gets the code, or -1 for an empty row.
struct RowDraw {
  int rows = 1, codes = 0, logit_stride = 0;
  const float* logits = nullptr;   // [R, stride]
  const int32_t* place = nullptr;  // [R]
  DrawState* states = nullptr;
  uint32_t* seen = nullptr;  // [P, seen_words] bits
  int seen_words = 0;
  int32_t* drawn = nullptr;  // [R], may be pinned host memory
};
void launch_row_draw(const RowDraw& call, cudaStream_t stream);

}  // namespace tandem
