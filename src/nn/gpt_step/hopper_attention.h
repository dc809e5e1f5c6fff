// Flash attention over packed sequences for Hopper's tensor cores (wgmma), heads of 64. The
// backward pass is two kernels, one over keys and one over queries, that compute the scores again:
// nothing is added up by atomics, so its bits are the same every time.
#pragma once

#include "nn/gpt_step/gpt_kernels.h"

namespace tandem {

constexpr int hopper_head_width = 64;

// Whether they were compiled in and the current device has such tensor cores.
bool hopper_attention_runs();

// What each block does: tiles of rows of the sequences, those with most work first, so that no long
// one is left to the end. {first place, places of the sequence, first row of the tile, -}; behind
// the last, tiles of no places.
struct AttentionTiles {
  int4 *queries = nullptr, *keys = nullptr;  // [attention_tiles(…)]
};
constexpr int64_t attention_tiles(int64_t places, int64_t sequences, int64_t rows) {
  return places / rows + sequences;  // tiles of `rows` rows at most
}
constexpr int query_tile_rows = 128, key_tile_rows = 64;
void launch_plan_tiles(const int32_t* starts, int sequences, int places,
                       const AttentionTiles& tiles, cudaStream_t stream);

struct HopperAttention {
  const bf16* qkv = nullptr;  // [places, 3, heads, 64], or [places, heads, 3, 64]
  bool by_head = false;       // the second
  bool causal = true;         // else a place sees its whole sequence
  AttentionTiles tiles;
  int sequences = 0, places = 0, heads = 0;
  double pairs = 0;            // of query and key, of a head; 0: the host does not know
  bf16* out = nullptr;         // [places, heads, 64]
  float* logsumexp = nullptr;  // [heads, places] of the scaled scores, base 2
  // backward
  const bf16* gradient = nullptr;  // of out
  bf16* qkv_gradient = nullptr;
  float* dots = nullptr;  // [heads, places] work space
  // Sums of the queries' and values' gradients over the rows of each tile, [tiles, heads * 64]. (A
  // shift of all keys changes no score: the sum of theirs is zero.)
  float *query_sums = nullptr, *value_sums = nullptr;
};
void launch_hopper_attention(const HopperAttention& call, cudaStream_t stream);
void launch_hopper_attention_backward(const HopperAttention& call, cudaStream_t stream);

}  // namespace tandem
