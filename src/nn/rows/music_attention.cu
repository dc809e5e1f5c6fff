// Attention of rows over long caches, one block or a few a row and head (see attention_math.cuh).
// What is read before the predecessor has ended is read past the first-level cache.
#include "nn/rows/attention_math.cuh"
#include "nn/rows/launch.cuh"

namespace tandem {
namespace {

constexpr int threads = 256, warps = threads / 32, parts = attention_parts, unroll = unit_loads;

// A lane's share of one head's new key or value.
template <class H, int each>
__device__ inline void read_halves(const H* from, float (&out)[each]) {
#pragma unroll
  for (int i = 0; i < each; i += 8) {
    float eight[8];
    widen<H>(*reinterpret_cast<const uint4*>(from + i), eight);
#pragma unroll
    for (int j = 0; j < 8; ++j) out[i + j] = eight[j];
  }
}

// Into the cache in 8 bits, by `lanes` lanes: the largest becomes 127.
template <int lanes>
__device__ inline void put_eight_bits(const float (&value)[16], int8_t* to, float* scale) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) largest = fmaxf(largest, fabsf(value[i]));
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
  const float steps = largest > 0 ? 127.f / largest : 0.f;
  uint32_t words[4] = {};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<uint32_t>(__float2int_rn(value[i] * steps)) & 255u;
    words[i / 4] |= byte << (8 * (i % 4));
  }
  if (threadIdx.x % 32 >= lanes) return;
  *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
  if (threadIdx.x % 32 == 0) *scale = largest / 127.f;
}

template <class H, int pad, bool eight, bool clustered>
__global__ void __launch_bounds__(threads, eight ? 2 : 4)
    music_attention(const MusicAttention call) {
  constexpr int size = eight ? 1 : 2;  // bytes of an element
  constexpr int each = 16 / size;      // elements of a lane
  constexpr int lanes = pad / each;    // of a position
  constexpr int step = 32 / lanes;     // positions of one load of a warp
  constexpr int unit = step * unroll, row_size = pad + 2;
  __shared__ PartSums<pad> merged;
  __shared__ int is_last;
  auto& sums = merged.sums;
  if constexpr (clustered) arrive_at_cluster();
  release_successor();
  if (!call.early) await_predecessor();
  const int row = blockIdx.x, head = blockIdx.y;
  const int place = __ldcg(call.places.place + row);
  const KeyValues& cache = call.cache;
  const int last = place < 0   ? -1
                   : call.last ? __ldcg(call.last + place)
                               : __ldcg(call.places.position + row);
  // Of the cache: with 8 bits the row's own are not read from there.
  const int end = eight && call.new_keys ? last - 1 : last;
  const int units = last < 0 ? 0 : last / unit + 1, used = min(units, parts);
  const int blocks =
      clustered ? gridDim.z : min(static_cast<int>(gridDim.z), (used + warps - 1) / warps);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % lanes;
  const int group = threadIdx.x % 32 / lanes;
  const int64_t pair = static_cast<int64_t>(row) * cache.heads + head;
  const int64_t sequence = (static_cast<int64_t>(place) * cache.heads + head) * cache.positions;
  const auto* keys = static_cast<const char*>(cache.keys) + sequence * pad * size + lane * 16;
  const auto* values = static_cast<const char*>(cache.values) + sequence * pad * size + lane * 16;
  float* partial = call.partial + pair * parts * row_size;

  uint4 key[unroll], value[unroll];
  float key_scale[unroll], value_scale[unroll];
  const auto load = [&](int u) {
    const int start = u * unit + group;
#pragma unroll
    for (int i = 0; i < unroll; ++i) {
      const int64_t at = max(min(start + i * step, end), 0);
      key[i] = __ldcg(reinterpret_cast<const uint4*>(keys + at * pad * size));
      if constexpr (eight) key_scale[i] = __ldcg(call.key_scales + sequence + at);
    }
#pragma unroll
    for (int i = 0; i < unroll; ++i) {
      const int64_t at = max(min(start + i * step, end), 0);
      value[i] = __ldcg(reinterpret_cast<const uint4*>(values + at * pad * size));
      if constexpr (eight) value_scale[i] = __ldcg(call.value_scales + sequence + at);
    }
  };
  int part = blockIdx.z * warps + warp;
  bool loaded = call.early && part < used;
  if (loaded) load(part);
  if (call.early) await_predecessor();
  if (place < 0) {
    if constexpr (clustered) wait_for_cluster();
    return;
  }
  if (!clustered && static_cast<int>(blockIdx.z) >= max(blocks, 1)) return;

  float query[each];
  const float* q = call.queries + pair * pad + lane * each;
#pragma unroll
  for (int i = 0; i < each; i += 4)
    *reinterpret_cast<float4*>(query + i) = *reinterpret_cast<const float4*>(q + i);
  if constexpr (clustered) wait_for_cluster();  // the others are there

  for (; part < used; part += warps * blocks) {
    RunningSum<each> total;
    for (int u = part; u < units; u += parts) {
      const int start = u * unit + group;
      if (!loaded) {
        load(u);
      } else if (!eight && !call.last && u == units - 1) {
        // The row's own were not yet there.
#pragma unroll
        for (int i = 0; i < unroll; ++i) {
          if (start + i * step < last) continue;
          key[i] = __ldcg(reinterpret_cast<const uint4*>(keys + int64_t{last} * pad * size));
          value[i] = __ldcg(reinterpret_cast<const uint4*>(values + int64_t{last} * pad * size));
        }
      }
      loaded = false;
      total.template add_unit<H, lanes, eight>(query, key, value, key_scale, value_scale, start,
                                               end);
    }
    if constexpr (eight) {
      if (call.new_keys && part == (units - 1) % parts) {  // the row's own
        const int64_t at = sequence + last;
        float fresh[each], score = 0;
        read_halves(static_cast<const H*>(call.new_keys) + pair * pad + lane * each, fresh);
        put_eight_bits<lanes>(fresh, static_cast<int8_t*>(cache.keys) + at * pad + lane * each,
                              call.key_scales + at);
#pragma unroll
        for (int e = 0; e < each; ++e) score += query[e] * fresh[e];
#pragma unroll
        for (int offset = lanes / 2; offset > 0; offset /= 2)
          score += __shfl_xor_sync(~0u, score, offset);
        read_halves(static_cast<const H*>(call.new_values) + pair * pad + lane * each, fresh);
        put_eight_bits<lanes>(fresh, static_cast<int8_t*>(cache.values) + at * pad + lane * each,
                              call.value_scales + at);
        if (group == 0) {
          const float now = fmaxf(total.largest, score);
          const float keep = __expf(total.largest - now), weight = __expf(score - now);
          total.largest = now;
          total.sum = total.sum * keep + weight;
#pragma unroll
          for (int e = 0; e < each; ++e)
            total.result[e] = total.result[e] * keep + weight * fresh[e];
        }
      }
    }
    total.template merge_groups<lanes>();
    if (threadIdx.x % 32 < lanes) {
      if constexpr (clustered) {
#pragma unroll
        for (int e = 0; e < each; ++e)
          store_in_block(&sums[part][lane * each + e], 0, total.result[e]);
        if (lane == 0) {
          store_in_block(&sums[part][pad], 0, total.largest);
          store_in_block(&sums[part][pad + 1], 0, total.sum);
        }
      } else {
        float* to = blocks <= 1 ? sums[part] : partial + part * row_size;
#pragma unroll
        for (int e = 0; e < each; ++e) to[lane * each + e] = total.result[e];
        if (lane == 0) to[pad] = total.largest, to[pad + 1] = total.sum;
      }
    }
  }
  if constexpr (clustered) {
    arrive_at_cluster();
    wait_for_cluster();
    if (blockIdx.z > 0) return;
  } else if (blocks > 1) {  // the last block to come merges
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(call.arrived + pair, 1) == blocks - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    if (threadIdx.x == 0) call.arrived[pair] = 0;
    for (int i = threadIdx.x; i < used * row_size; i += threads)
      sums[i / row_size][i % row_size] = __ldcg(partial + i);
  }
  __syncthreads();
  const float2 y = merged.merge(used, units);
  const int at = threadIdx.x * 2;
  if (at >= cache.head_width) return;
  *reinterpret_cast<uint32_t*>(static_cast<H*>(call.packed_out) +
                               packed_index(row, head * cache.head_width + at, call.inner)) =
      half_pair<H>(y.x, y.y);
}

bool has_clusters() { return device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9; }

}  // namespace

int music_attention_splits(int rows, int heads) {
  const int blocks = rows * heads;
  return blocks <= 256 ? 4 : blocks <= 512 ? 2 : 1;
}

void launch_music_attention(const MusicAttention& call, cudaStream_t stream) {
  const dim3 grid(call.rows, call.cache.heads, call.splits);
  const bool clustered = call.splits > 1 && has_clusters();
  const auto launch = [&](auto kernel) {
    launch_in_turn<MusicAttention>(kernel, grid, dim3(threads), 0, stream, call,
                                   clustered ? dim3(1, 1, call.splits) : dim3(1, 1, 1));
  };
  const auto choose = [&]<class H, int pad, bool eight>() {
    clustered ? launch(music_attention<H, pad, eight, true>)
              : launch(music_attention<H, pad, eight, false>);
  };
  const auto with = [&]<class H>(H) {
    if (head_pad(call.cache.head_width) == 64) {
      call.eight_bits ? choose.template operator()<H, 64, true>()
                      : choose.template operator()<H, 64, false>();
    } else {
      call.eight_bits ? choose.template operator()<H, 128, true>()
                      : choose.template operator()<H, 128, false>();
    }
  };
  call.half == RowHalf::fp16 ? with(__half{}) : with(__nv_bfloat16{});
}

}  // namespace tandem
