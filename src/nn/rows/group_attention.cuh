// What the kernels of speech's attention share. Of 32 groups of lanes (16 where heads are wider
// than 64) each takes every 32nd position, one after the other, 8 elements a lane, and keeps its
// own running maximum, sum and result; those of a warp's groups are merged first, then those of the
// eight warps in their order. Which block or warp does it changes nothing.
#pragma once

#include "nn/rows/row_math.cuh"

namespace tandem {

struct GroupSum {
  float largest = -INFINITY, sum = 0, result[8] = {};

  // One position, by the `lanes` lanes of `group`; a position that does not count is passed over.
  template <class H, int lanes>
  __device__ void add(const float (&query)[8], const uint4& key, const uint4& value, uint32_t group,
                      bool counts) {
    add<H>(score_of<H, lanes>(query, key, group), value, counts);
  }

  template <class H, int lanes>
  __device__ static float score_of(const float (&query)[8], const uint4& key, uint32_t group) {
    const uint32_t words[4] = {key.x, key.y, key.z, key.w};
    float score = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 k = float_pair<H>(words[i]);
      score += query[2 * i] * k.x + query[2 * i + 1] * k.y;
    }
#pragma unroll
    for (int offset = lanes / 2; offset > 0; offset /= 2)
      score += __shfl_xor_sync(group, score, offset);
    return score;
  }
  template <class H>
  __device__ void add(float score, const uint4& value, bool counts) {
    if (!counts) return;
    const float now = fmaxf(largest, score);
    const float keep = __expf(largest - now), weight = __expf(score - now);
    largest = now;
    sum = sum * keep + weight;
    const uint32_t parts[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 v = float_pair<H>(parts[i]);
      result[2 * i] = result[2 * i] * keep + weight * v.x;
      result[2 * i + 1] = result[2 * i + 1] * keep + weight * v.y;
    }
  }

  // The warp's groups become one; a group that had no position counts nothing.
  template <int lanes>
  __device__ void merge_groups() {
#pragma unroll
    for (int offset = lanes; offset < 32; offset *= 2) {
      const float other = __shfl_xor_sync(~0u, largest, offset);
      const float top = fmaxf(largest, other);
      const float mine = largest == -INFINITY ? 0.f : __expf(largest - top);
      const float theirs = other == -INFINITY ? 0.f : __expf(other - top);
      sum = sum * mine + __shfl_xor_sync(~0u, sum, offset) * theirs;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        result[i] = result[i] * mine + __shfl_xor_sync(~0u, result[i], offset) * theirs;
      largest = top;
    }
  }
};

// The sums of eight warps, in shared memory.
template <int pad>
struct WarpSums {
  static constexpr int warps = 8;
  float largest[warps], sum[warps];
  float result[warps][pad + 4];

  // Elements `pair` and pair + 1, when all are there.
  __device__ float2 merge(int pair) const {
    float top = -INFINITY;
#pragma unroll
    for (int w = 0; w < warps; ++w) top = fmaxf(top, largest[w]);
    float total = 0;
    float2 out = {0, 0};
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const float scale = __expf(largest[w] - top);
      total += sum[w] * scale;
      out.x += result[w][pair] * scale;
      out.y += result[w][pair + 1] * scale;
    }
    return {out.x / total, out.y / total};
  }
};

}  // namespace tandem
