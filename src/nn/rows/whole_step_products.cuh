// Products of a step in one kernel: its few rows, packed in shared memory, by weights there. Sums
// run as in row_product.cu.
#pragma once

#include "nn/rows/whole_step_memory.cuh"

namespace tandem::whole {

// Where the pair of columns k and k + 1 of a row is in Near::rows, in words.
__device__ inline int word_of(int row, int k) {
  return (k / 16 * 4 * most_rows + row * 4 + k % 8 / 2) * 2 + k % 16 / 8;
}

template <class H, int tiles, int count>
__device__ void multiply(const uint2 (*rows)[4 * most_rows], int real, const uint4* weight,
                         float (&sums)[tiles][4]) {
  const int thread = thread_now(), warp = thread / 32, lane = thread % 32;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int block = warp + warps * i;
    uint2 x[2] = {{0, 0}, {0, 0}};
    if (lane < 4 * real) x[0] = rows[2 * block][lane], x[1] = rows[2 * block + 1][lane];
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      const uint4 w = weight[(n * count * warps + block) * 32 + lane];
      multiply_tile<H>(sums[n], {x[0].x, 0, x[0].y, 0}, w.x, w.y);
      multiply_tile<H>(sums[n], {x[1].x, 0, x[1].y, 0}, w.z, w.w);
    }
  }
}

// The pair of columns a thread finishes.
template <int tiles>
struct Pair {
  int row = threadIdx.x / (4 * tiles), column = threadIdx.x % (4 * tiles) * 2;

  // The warps' sums become one; ends when every warp has read its weights and rows.
  template <class Memory>
  __device__ float2 sum(Memory& near, const float (&sums)[tiles][4], int rows) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane < 4 * rows) {
#pragma unroll
      for (int n = 0; n < tiles; ++n)
        *reinterpret_cast<float2*>(&near.partial[warp][lane / 4][n * 8 + lane % 4 * 2]) = {
            sums[n][0], sums[n][1]};
    }
    __syncthreads();
    float2 y = {0, 0};
    if (row >= rows) return y;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const float2 part = *reinterpret_cast<const float2*>(&near.partial[w][row][column]);
      y.x += part.x;
      y.y += part.y;
    }
    return y;
  }
};

__device__ inline float2 bias_at(const float* bias, int column) {
  return bias ? float2{__ldg(bias + column), __ldg(bias + column + 1)} : float2{0, 0};
}
// A norm's weight and bias, fetched before its rows are there.
struct Norm {
  BlockRow<1> scale, shift;
  __device__ explicit Norm(const RowNorm& norm) {
    scale.load(norm.weight, width);
    shift.load(norm.bias, width);
  }
  // Of rows of float words, where `row(r)` says, packed into shared memory.
  template <class H, class Memory, class Row>
  __device__ void of(int rows, Memory& near, const Row& row) const {
    const int thread = thread_now();
    uint4 words_of[most_rows];
    await_words(rows, words_of, [&](int r) { return row(r) + 4 * thread; });
    BlockRow<1> values[most_rows];
#pragma unroll
    for (int r = 0; r < most_rows; ++r)
      if (r < rows)
        values[r].value[0] = {__uint_as_float(words_of[r].x), __uint_as_float(words_of[r].y),
                              __uint_as_float(words_of[r].z), __uint_as_float(words_of[r].w)};
    BlockRow<1>::template normalise_all<most_rows>(values, rows, scale, shift, width, near.scratch);
    auto* words = reinterpret_cast<uint32_t*>(near.rows);
#pragma unroll
    for (int r = 0; r < most_rows; ++r) {
      if (r >= rows) continue;
      const float4& v = values[r].value[0];
      words[word_of(r, 4 * thread)] = half_pair<H>(v.x, v.y);
      words[word_of(r, 4 * thread + 2)] = half_pair<H>(v.z, v.w);
    }
    __syncthreads();
  }
};

}  // namespace tandem::whole
