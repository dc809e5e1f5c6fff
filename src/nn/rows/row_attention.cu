// One block a row and head, reading each key and value once (see group_attention.cuh).
#include "nn/rows/group_attention.cuh"
#include "nn/rows/launch.cuh"

namespace tandem {
namespace {

constexpr int threads = 256;

// `early`: see RowAttention. What is read before the predecessor has ended is read past the
// first-level cache.
template <class H, int pad, bool early>
__global__ void __launch_bounds__(threads) row_attention(const RowAttention call) {
  constexpr int lanes = pad / 8, groups = threads / lanes, unroll = 4;
  __shared__ WarpSums<pad> merged;
  release_successor();
  if constexpr (!early) await_predecessor();
  const int row = blockIdx.x, head = blockIdx.y;
  const int place = __ldcg(call.places.place + row);
  if (place < 0) {
    // A kernel that ended before its predecessor would let its successor start too early.
    if constexpr (early) await_predecessor();
    return;
  }
  const KeyValues& cache = call.cache;
  const int length = __ldcg(call.places.position + row) + 1;
  const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  const uint32_t my_group = ((1u << lanes) - 1) << (threadIdx.x % 32 / lanes * lanes);
  const int64_t sequence =
      (static_cast<int64_t>(place) * cache.heads + head) * cache.positions * pad + lane * 8;
  const H* keys = static_cast<const H*>(cache.keys) + sequence;
  const H* values = static_cast<const H*>(cache.values) + sequence;

  uint4 key[unroll], value[unroll];
  const auto load = [&](int u, int position) {
    const int64_t at = static_cast<int64_t>(position) * pad;
    key[u] = __ldcg(reinterpret_cast<const uint4*>(keys + at));
    value[u] = __ldcg(reinterpret_cast<const uint4*>(values + at));
  };
  if constexpr (early) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) load(u, min(group + u * groups, length - 1));
    await_predecessor();
#pragma unroll
    for (int u = 0; u < unroll; ++u)  // the row's own were not yet there
      if (group + u * groups >= length - 1) load(u, length - 1);
  }

  float query[8];
  const float* q = call.queries + (static_cast<int64_t>(row) * cache.heads + head) * pad + lane * 8;
  *reinterpret_cast<float4*>(query) = *reinterpret_cast<const float4*>(q);
  *reinterpret_cast<float4*>(query + 4) = *reinterpret_cast<const float4*>(q + 4);

  GroupSum total;
  for (int start = group; start < length; start += groups * unroll) {
    if (!early || start != group) {
#pragma unroll
      for (int u = 0; u < unroll; ++u) load(u, min(start + u * groups, length - 1));
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      total.template add<H, lanes>(query, key[u], value[u], my_group, start + u * groups < length);
  }
  total.template merge_groups<lanes>();
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 < lanes) {
    if (lane == 0) {
      merged.largest[warp] = total.largest;
      merged.sum[warp] = total.sum;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) merged.result[warp][lane * 8 + i] = total.result[i];
  }
  __syncthreads();

  const int pair = threadIdx.x * 2;  // two elements a thread
  if (pair >= cache.head_width) return;
  const float2 out = merged.merge(pair);
  *reinterpret_cast<uint32_t*>(static_cast<H*>(call.packed_out) +
                               packed_index(row, head * cache.head_width + pair, call.inner)) =
      half_pair<H>(out.x, out.y);
}

}  // namespace

void launch_row_attention(const RowAttention& call, cudaStream_t stream) {
  const dim3 grid(call.rows, call.cache.heads);
  const auto launch = [&](auto kernel) {
    launch_in_turn<RowAttention>(kernel, grid, dim3(threads), 0, stream, call);
  };
  const auto choose = [&]<class H, int pad>() {
    call.early ? launch(row_attention<H, pad, true>) : launch(row_attention<H, pad, false>);
  };
  const bool narrow = head_pad(call.cache.head_width) == 64;
  if (call.half == RowHalf::fp16) {
    narrow ? choose.template operator()<__half, 64>() : choose.template operator()<__half, 128>();
  } else {
    narrow ? choose.template operator()<__nv_bfloat16, 64>()
           : choose.template operator()<__nv_bfloat16, 128>();
  }
}

}  // namespace tandem
