// CUDA kernels that MusicGen's decoder needs beside the row kernels: the input of a step from K
// rows of tokens, attention over long caches, and the draw of the next tokens. As there, a row's
// result does not depend on the rows beside it.
//
// Shapes: R rows, H heads, K codebooks, V codes, N clips, P places (a guided clip has two: its own
// and, N further on, the one without the caption), C positions or columns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "nn/rows/row_kernels.h"

namespace tandem {

// Tokens of a batch and how far it is; lives on the device.
struct MusicTokens {
  int32_t* tokens = nullptr;  // [N, K, columns]; -1: to be drawn
  int32_t* column = nullptr;  // of the next step's input: tokens behind it are drawn from it
  int32_t* failed = nullptr;  // set when a logit is no number
  int clips = 1, codebooks = 1, columns = 0;
};

// The input of rows: the sum of the embeddings of a column's tokens, and its position's sinusoids.
struct MusicBegin {
  int rows = 1, width = 0;
  const int32_t* row_place = nullptr;   // [R], -1: none
  const int32_t* row_column = nullptr;  // [R]; null: the batch's column
  MusicTokens batch;
  const float* embeddings = nullptr;  // [K, codes + 1, D]
  int embedding_rows = 0;             // codes + 1
  const float* sinusoids = nullptr;   // [columns, D]
  float* x = nullptr;                 // [R, D]
  int32_t* place = nullptr;           // [R]
  int32_t* position = nullptr;
  int32_t* own_row = nullptr;     // [R]: the row's number, -1 for an empty one
  bool successor_awaits = false;  // as in RowBegin
};
void launch_music_begin(const MusicBegin& call, cudaStream_t stream);

// softmax(q k) v of each row over positions 0 .. `last` of its place. With few rows the positions
// are shared out among `splits` blocks; the result is the same for every number of them.
constexpr int attention_parts = 32;  // sums that are merged at the end, always as many
struct MusicAttention {
  RowHalf half = RowHalf::fp16;
  int rows = 1, inner = 0;         // inner: padded D
  const float* queries = nullptr;  // [R, H, head_pad], scaled
  RowPlaces places;
  const int32_t* last = nullptr;  // [P], -1: reads nothing; null: the row's own position
  KeyValues cache;
  // Keys and values in 8 bits with one scale a position and head. Those of the rows themselves come
  // as halves [R, H, head_pad], are read as such and put into the cache for later. One row a place.
  bool eight_bits = false;
  const void* new_keys = nullptr;
  const void* new_values = nullptr;
  float* key_scales = nullptr;  // [P, H, C]
  float* value_scales = nullptr;
  // Keys and values but the rows' own are there before the kernel before this one has ended: those
  // of a caption always, others when every place has one row.
  bool early = false;
  int splits = 1;              // 1, 2 or 4
  float* partial = nullptr;    // [R, H, attention_parts, head_pad + 2]; with more than one split
  int32_t* arrived = nullptr;  // [R, H], zeros
  void* packed_out = nullptr;
};
void launch_music_attention(const MusicAttention& call, cudaStream_t stream);
int music_attention_splits(int rows, int heads);  // as many as fill the GPU

struct MusicDrawSettings {
  int64_t first;  // number of the draw of column 1
  double top_p;
  float temperature, guidance;
  int32_t top_k;  // 0: all
  int32_t greedy;
};

// The tokens of the next column by the rules of nn/draw_weight.h, where they are to be drawn; then
// the batch moves on by a column.
struct MusicDraw {
  int rows = 1, codes = 0;  // rows: clips; row r's logits without the caption are at r + rows
  bool guided = true;
  const float* logits = nullptr;  // [R, K, V]
  const int32_t* place = nullptr;
  const int32_t* position = nullptr;  // of the input
  MusicTokens batch;
  const uint64_t* keys = nullptr;  // [N]
  const MusicDrawSettings* settings = nullptr;
};
void launch_music_draw(const MusicDraw& call, cudaStream_t stream);

}  // namespace tandem
