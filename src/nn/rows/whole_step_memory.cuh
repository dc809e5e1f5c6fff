// The memory of a step in one kernel: what its blocks hand to each other, and what each has near.
//
// Columns of products are shared out by block number: three tiles of query, key and value, one of
// those that add to x, so the columns of x a block adds to are always its own, four of those that
// widen.
#pragma once

#include <type_traits>

#include "nn/rows/whole_step.h"
#include "nn/rows/whole_step_attention.cuh"
#include "nn/rows/whole_step_blocks.cuh"

namespace tandem::whole {

constexpr int width = WholeStepSize::width, inner = WholeStepSize::inner;
constexpr int blocks = 128, most_rows = WholeStepSize::most_rows;
constexpr int qkv_tiles = 3, wide_tiles = 4;          // of 8 columns, of a block
constexpr int tile_loads = width / inner_block * 32;  // 16 bytes each
constexpr int deep_loads = inner / inner_block * 32;  // of a tile of the contraction
constexpr int shares = width / inner_block / warps;   // of the inner dimension, of a warp
constexpr int deep_shares = inner / inner_block / warps;
static_assert(blocks * 8 == width && blocks * 8 * wide_tiles == inner);
static_assert(blocks >= most_rows * heads * cluster);

template <class H, bool music>
using Attention = std::conditional_t<music, PartAttention<H>, GroupAttention<H>>;

// What the blocks hand over in one layer: floats, or pairs of halves.
struct Words {
  uint32_t queries[most_rows][width], own[most_rows][2][width / 2], attended[most_rows][width / 2],
      x_self[most_rows][width], wide[most_rows][inner / 2], x_inner[most_rows][width];
  uint32_t text_queries[most_rows][width], text_attended[most_rows][width / 2],
      x_cross[most_rows][width];
  // Of attended, x_self, wide, x_inner, text_attended and x_cross; each in a line of its own.
  Call attended_call, x_self_call, wide_call, x_inner_call, text_attended_call, x_cross_call;
};
static_assert(sizeof(Words) % 16 == 0);

template <class H, bool music>
struct Near {
  __align__(128) uint4 qkv[qkv_tiles * tile_loads];
  uint4 narrow[tile_loads];  // project, then the caption's query, then its project
  uint4 expand[wide_tiles * tile_loads];
  uint4 contract[deep_loads];
  uint2 rows[inner / 16][4 * most_rows];  // packed as tensor cores read them, rows 0 and 1 only
  float partial[warps][most_rows][8 * wide_tiles];
  typename Attention<H, music>::Memory sums;
  float scratch[16 * most_rows];
  RowEnd ends[most_rows], text_ends[most_rows];
  WholeStepLayer layers[2];
  uint64_t full[4];
};

}  // namespace tandem::whole
