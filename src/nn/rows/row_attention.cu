// One block a row and head, reading each key and value once. A group of lanes takes one position at
// a time, 8 elements a lane, and keeps its own running maximum, sum and result; the groups' results
// are merged at the end in a fixed order, those of a warp first. So the order of sums depends on
// the position alone.
#include "nn/rows/launch.cuh"
#include "nn/rows/row_math.cuh"

namespace tandem {
namespace {

constexpr int threads = 256, warps = threads / 32;

template <class H, int pad>
__global__ void __launch_bounds__(threads) row_attention(const RowAttention call) {
  constexpr int lanes = pad / 8, groups = threads / lanes, unroll = 4;
  __shared__ float shared_max[warps], shared_sum[warps];
  __shared__ float shared_result[warps][pad + 4];
  release_successor();
  await_predecessor();
  const int row = blockIdx.x, head = blockIdx.y;
  const int place = call.places.place[row];
  if (place < 0) return;
  const KeyValues& cache = call.cache;
  const int length = call.places.position[row] + 1;
  const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  const uint32_t my_group = ((1u << lanes) - 1) << (threadIdx.x % 32 / lanes * lanes);
  const int64_t sequence =
      (static_cast<int64_t>(place) * cache.heads + head) * cache.positions * pad + lane * 8;
  const H* keys = static_cast<const H*>(cache.keys) + sequence;
  const H* values = static_cast<const H*>(cache.values) + sequence;

  float query[8];
  const float* q = call.queries + (static_cast<int64_t>(row) * cache.heads + head) * pad + lane * 8;
  *reinterpret_cast<float4*>(query) = *reinterpret_cast<const float4*>(q);
  *reinterpret_cast<float4*>(query + 4) = *reinterpret_cast<const float4*>(q + 4);

  float largest = -INFINITY, sum = 0, result[8] = {};
  for (int start = group; start < length; start += groups * unroll) {
    uint4 key[unroll], value[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const int64_t at = static_cast<int64_t>(min(start + u * groups, length - 1)) * pad;
      key[u] = *reinterpret_cast<const uint4*>(keys + at);
      value[u] = *reinterpret_cast<const uint4*>(values + at);
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const uint32_t words[4] = {key[u].x, key[u].y, key[u].z, key[u].w};
      float score = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 k = float_pair<H>(words[i]);
        score += query[2 * i] * k.x + query[2 * i + 1] * k.y;
      }
#pragma unroll
      for (int offset = lanes / 2; offset > 0; offset /= 2)
        score += __shfl_xor_sync(my_group, score, offset);
      if (start + u * groups >= length) continue;
      const float now = fmaxf(largest, score);
      const float keep = __expf(largest - now), weight = __expf(score - now);
      largest = now;
      sum = sum * keep + weight;
      const uint32_t parts[4] = {value[u].x, value[u].y, value[u].z, value[u].w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 v = float_pair<H>(parts[i]);
        result[2 * i] = result[2 * i] * keep + weight * v.x;
        result[2 * i + 1] = result[2 * i + 1] * keep + weight * v.y;
      }
    }
  }
  // A group that had no position counts nothing.
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
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 < lanes) {
    if (lane == 0) {
      shared_max[warp] = largest;
      shared_sum[warp] = sum;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) shared_result[warp][lane * 8 + i] = result[i];
  }
  __syncthreads();

  const int pair = threadIdx.x * 2;  // two elements a thread
  if (pair >= cache.head_width) return;
  float top = -INFINITY;
#pragma unroll
  for (int w = 0; w < warps; ++w) top = fmaxf(top, shared_max[w]);
  float total = 0;
  float2 out = {0, 0};
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    const float scale = __expf(shared_max[w] - top);
    total += shared_sum[w] * scale;
    out.x += shared_result[w][pair] * scale;
    out.y += shared_result[w][pair + 1] * scale;
  }
  *reinterpret_cast<uint32_t*>(static_cast<H*>(call.packed_out) +
                               packed_index(row, head * cache.head_width + pair, call.inner)) =
      half_pair<H>(out.x / total, out.y / total);
}

}  // namespace

void launch_row_attention(const RowAttention& call, cudaStream_t stream) {
  const dim3 grid(call.rows, call.cache.heads);
  const auto launch = [&](auto kernel) {
    launch_in_turn<RowAttention>(kernel, grid, dim3(threads), 0, stream, call);
  };
  const bool narrow = head_pad(call.cache.head_width) == 64;
  if (call.half == RowHalf::fp16) {
    narrow ? launch(row_attention<__half, 64>) : launch(row_attention<__half, 128>);
  } else {
    narrow ? launch(row_attention<__nv_bfloat16, 64>) : launch(row_attention<__nv_bfloat16, 128>);
  }
}

}  // namespace tandem
