// A cluster of eight blocks makes one head: each an eighth of the columns of its query (and key and
// value), told to all eight through shared memory; then the parts of the positions are shared out
// among their warps, and the block whose number is the row's merges them. Sums run as in
// row_product.cu and attention_math.cuh, or group_attention.cuh.
#include <algorithm>
#include <type_traits>

#include "nn/rows/attention_math.cuh"
#include "nn/rows/group_attention.cuh"
#include "nn/rows/launch.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256, warps = threads / 32, parts = attention_parts, cluster = 8;
constexpr int pad = 64;                                                          // a head's width
constexpr int lanes = 8, each = 8, step = 32 / lanes, unit = step * unit_loads;  // of positions
constexpr int groups = warps * 32 / lanes;
constexpr int most_rows = 4, most_width = 1024;          // one quad of a row a thread
constexpr int ahead = most_width / inner_block / warps;  // all of a warp's weights

// Where a row is: its place, and the last position it attends to; -1 where there is none.
struct RowEnd {
  int place, last;
  // Past the first-level cache: this may be read before the predecessor has ended.
  __device__ static RowEnd read(const JoinedAttention& call, int row) {
    const int place = __ldcg(call.places.place + row);
    return {place, place < 0   ? -1
                   : call.last ? __ldcg(call.last + place)
                               : __ldcg(call.places.position + row)};
  }
};

// What a warp sums: one part of the positions of one row, or its groups' share of all of them.
struct PartOfRow {
  int row, part, last;
  const char *keys, *values;

  __device__ PartOfRow(const JoinedAttention& call, int item, const RowEnd& end)
      : row(item / parts), part(item % parts), last(end.last) {
    const KeyValues& cache = call.cache;
    const int64_t start =
        (static_cast<int64_t>(end.place) * cache.heads + blockIdx.y) * cache.positions * pad * 2 +
        threadIdx.x % lanes * 16;
    keys = static_cast<const char*>(cache.keys) + start;
    values = static_cast<const char*>(cache.values) + start;
  }
  __device__ int units() const { return last < 0 ? 0 : last / unit + 1; }
  __device__ int used() const { return min(units(), parts); }
  // The lane's first position in a unit.
  __device__ int start_of(int u) const { return u * unit + threadIdx.x % 32 / lanes; }
  // As RowEnd::read.
  __device__ void load(int start, int apart, uint4 (&key)[unit_loads],
                       uint4 (&value)[unit_loads]) const {
#pragma unroll
    for (int i = 0; i < unit_loads; ++i) {
      const int64_t at = max(min(start + i * apart, last), 0);
      key[i] = __ldcg(reinterpret_cast<const uint4*>(keys + at * pad * 2));
      value[i] = __ldcg(reinterpret_cast<const uint4*>(values + at * pad * 2));
    }
  }
};

__device__ inline void read_query(const float (&row)[pad], float (&query)[each]) {
  const float* from = row + threadIdx.x % lanes * each;
  *reinterpret_cast<float4*>(query) = *reinterpret_cast<const float4*>(from);
  *reinterpret_cast<float4*>(query + 4) = *reinterpret_cast<const float4*>(from + 4);
}

// The norms of the rows, packed, to shared memory.
template <class H>
__device__ void norm_rows(const JoinedAttention& call, const BlockRow<1>& scale,
                          const BlockRow<1>& shift, H* normed) {
  auto* scratch = reinterpret_cast<float*>(normed + static_cast<int64_t>(row_block) * call.inner);
  constexpr int most = 2;
  for (int first = 0; first < call.rows; first += most) {
    const int count = min(call.rows - first, most);
    BlockRow<1> values[most];
#pragma unroll
    for (int r = 0; r < most; ++r) {
      if (r < count)
        values[r].load(call.x + static_cast<int64_t>(first + r) * call.width, call.width);
    }
    BlockRow<1>::template normalise_all<most>(values, count, scale, shift, call.width,
                                              scratch + 16 * first);
#pragma unroll
    for (int r = 0; r < most; ++r) {
      if (r < count) values[r].template pack<H>(normed, first + r, call.inner);
    }
  }
  __syncthreads();
}

template <class H, bool text, bool grouped>
__global__ void __launch_bounds__(threads, 2) joined_attention(const JoinedAttention call) {
  constexpr int tiles = text ? 1 : 3, width = 8 * tiles;   // of a block's columns
  extern __shared__ __align__(16) unsigned char shared[];  // rows, then sums of the product
  __shared__ __align__(16) float queries[most_rows][pad];
  __shared__ __align__(16) H own[2][most_rows][pad];  // keys, values
  __shared__ std::conditional_t<grouped, WarpSums<pad>, PartSums<pad>> merged;
  __shared__ RowEnd ends[most_rows];
  arrive_at_cluster();
  const int rank = blockIdx.x, head = blockIdx.y;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int blocks = call.inner / inner_block;
  const int heads = call.cache.heads;
  const int group = rank * (32 / lanes) + lane / lanes;  // of `groups`, where they are

  const auto* weight = static_cast<const uint4*>(call.weight);
  uint4 b[ahead][tiles];
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      const int mine = rank * tiles + n;  // of the head's 8 or 24
      const int64_t tile = (mine / 8 * heads + head) * 8 + mine % 8;
      if (warp + warps * i < blocks)
        b[i][n] = __ldg(weight + (tile * blocks + warp + warps * i) * 32 + lane);
    }
  }
  BlockRow<1> scale, shift;
  scale.load(call.norm.weight, call.width);
  shift.load(call.norm.bias, call.width);
  fetch_for_successor(call.next_weight, call.next_bytes);
  release_successor();
  if (!call.early) await_predecessor();

  // Where this thread's pair of the product goes.
  const int pair_row = threadIdx.x / (width / 2), pair_column = threadIdx.x % (width / 2) * 2;
  const bool has_pair = pair_row < call.rows;
  const int column = rank * width + pair_column, which = column / pad, within = column % pad;
  float2 bias = {0, 0};
  if (has_pair && call.bias) {
    const float* of = call.bias + (which * heads + head) * pad + within;
    bias = {__ldg(of), __ldg(of + 1)};
  }
  if (static_cast<int>(threadIdx.x) < call.rows)
    ends[threadIdx.x] = RowEnd::read(call, threadIdx.x);
  const int items = call.rows * parts, first_item = warp * cluster + rank;
  uint4 key[unit_loads], value[unit_loads];
  bool loaded = false;
  if constexpr (grouped) {
    if (warp < call.rows) {
      const PartOfRow first(call, warp * parts, RowEnd::read(call, warp));
      if (first.last >= 0) first.load(group, groups, key, value);
    }
  } else if (first_item < items) {
    const PartOfRow first(call, first_item, RowEnd::read(call, first_item / parts));
    loaded = first.part < first.used();
    if (loaded) first.load(first.start_of(first.part), step, key, value);
  }
  if (call.early) await_predecessor();

  norm_rows(call, scale, shift, reinterpret_cast<H*>(shared));
  const auto* rows = reinterpret_cast<const uint4*>(shared);
  float sums[tiles][4] = {};
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    const int block = warp + warps * i;
    if (block >= blocks) continue;
    uint4 x[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (lane / 4 < call.rows) {
      x[0] = rows[block * 64 + lane];
      x[1] = rows[block * 64 + 32 + lane];
    }
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      multiply_tile<H>(sums[n], x[0], b[i][n].x, b[i][n].y);
      multiply_tile<H>(sums[n], x[1], b[i][n].z, b[i][n].w);
    }
  }
  __syncthreads();                                   // the rows have been read
  auto* partial = reinterpret_cast<float*>(shared);  // [warps, 8, width]
#pragma unroll
  for (int n = 0; n < tiles; ++n)
    *reinterpret_cast<float2*>(partial + (warp * 8 + lane / 4) * width + n * 8 + lane % 4 * 2) = {
        sums[n][0], sums[n][1]};
  __syncthreads();
  wait_for_cluster();  // the others are there
  if (has_pair && ends[pair_row].place >= 0) {
    float2 y = {0, 0};
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const float2 part =
          *reinterpret_cast<const float2*>(partial + (w * 8 + pair_row) * width + pair_column);
      y.x += part.x;
      y.y += part.y;
    }
    y.x += bias.x, y.y += bias.y;
    if (which == 0) {
      const float by = rsqrtf(static_cast<float>(pad));
#pragma unroll
      for (int r = 0; r < cluster; ++r) {
        store_in_block(&queries[pair_row][within], r, y.x * by);
        store_in_block(&queries[pair_row][within + 1], r, y.y * by);
      }
    } else {
      const uint32_t bits = half_pair<H>(y.x, y.y);
#pragma unroll
      for (int r = 0; r < cluster; ++r) store_in_block(&own[which - 1][pair_row][within], r, bits);
      const RowEnd& end = ends[pair_row];
      const int64_t at =
          (static_cast<int64_t>(end.place) * heads + head) * call.cache.positions + end.last;
      auto* cached = static_cast<H*>(which == 1 ? call.cache.keys : call.cache.values);
      *reinterpret_cast<uint32_t*>(cached + at * pad + within) = bits;
    }
  }
  __syncwarp();
  arrive_at_cluster();
  wait_for_cluster();

  // The row's own key and value are not in the cache yet.
  const auto take_own = [&](const PartOfRow& mine, int start, int apart) {
#pragma unroll
    for (int i = 0; i < unit_loads; ++i) {
      if (start + i * apart < mine.last) continue;
      key[i] = *reinterpret_cast<const uint4*>(&own[0][mine.row][lane % lanes * each]);
      value[i] = *reinterpret_cast<const uint4*>(&own[1][mine.row][lane % lanes * each]);
    }
  };
  if constexpr (grouped) {
    if (warp < call.rows) {
      const PartOfRow mine(call, warp * parts, ends[warp]);
      float query[each];
      read_query(queries[mine.row], query);
      GroupSum total;
      const uint32_t my_group = 0xffu << (lane / lanes * lanes);
      for (int start = group; start <= mine.last; start += groups * unit_loads) {
        if (start != group) mine.load(start, groups, key, value);
        take_own(mine, start, groups);
#pragma unroll
        for (int i = 0; i < unit_loads; ++i)
          total.template add<H, lanes>(query, key[i], value[i], my_group,
                                       start + i * groups <= mine.last);
      }
      total.template merge_groups<lanes>();
      if (lane < lanes) {
#pragma unroll
        for (int e = 0; e < each; ++e)
          store_in_block(&merged.result[rank][lane * each + e], mine.row, total.result[e]);
        if (lane == 0) {
          store_in_block(&merged.largest[rank], mine.row, total.largest);
          store_in_block(&merged.sum[rank], mine.row, total.sum);
        }
      }
    }
  } else {
    for (int item = first_item; item < items; item += warps * cluster) {
      const PartOfRow mine(call, item, ends[item / parts]);
      const int units = mine.units();
      if (mine.part >= mine.used()) continue;
      float query[each];
      read_query(queries[mine.row], query);
      RunningSum<each> total;
      for (int u = mine.part; u < units; u += parts) {
        const int start = mine.start_of(u);
        if (!loaded) mine.load(start, step, key, value);
        loaded = false;
        if (!text && u == units - 1) take_own(mine, start, step);
        const float no_scales[unit_loads] = {};
        total.template add_unit<H, lanes, false>(query, key, value, no_scales, no_scales, start,
                                                 mine.last);
      }
      total.template merge_groups<lanes>();
      if (lane < lanes) {
        float* to = merged.sums[mine.part];
#pragma unroll
        for (int e = 0; e < each; ++e)
          store_in_block(to + lane * each + e, mine.row, total.result[e]);
        if (lane == 0) {
          store_in_block(to + pad, mine.row, total.largest);
          store_in_block(to + pad + 1, mine.row, total.sum);
        }
      }
    }
  }
  __syncwarp();
  arrive_at_cluster();
  wait_for_cluster();
  if (rank >= call.rows) return;
  if (ends[rank].place < 0) return;
  const PartOfRow whole(call, rank * parts, ends[rank]);
  const int at = threadIdx.x * 2;
  float2 y;
  if constexpr (!grouped) y = merged.merge(whole.used(), whole.units());
  if (at >= pad) return;
  if constexpr (grouped) y = merged.merge(at);
  *reinterpret_cast<uint32_t*>(static_cast<H*>(call.packed_out) +
                               packed_index(rank, head * pad + at, call.inner)) =
      half_pair<H>(y.x, y.y);
}

int capability() {
  int device = 0, major = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major;
}

}  // namespace

bool joined_attention_runs(int rows, int width, int head_width) {
  return rows <= most_rows && width <= most_width && head_width == pad && capability() >= 9;
}

void launch_joined_attention(const JoinedAttention& call, cudaStream_t stream) {
  const double rows = call.rows, columns = (call.last ? 1.0 : 3.0) * call.cache.heads * pad;
  const WorkNote note("tandem::joined_attention",
                      2 * rows * call.inner * columns + 4 * call.positions * call.width,
                      2 * call.inner * columns + 4 * call.positions * call.width);
  const size_t sums = sizeof(float) * warps * 8 * 24;
  const size_t near = size_t{2} * row_block * call.inner + sizeof(float) * 16 * most_rows;
  const auto launch = [&](auto kernel) {
    launch_in_turn<JoinedAttention>(kernel, dim3(cluster, call.cache.heads), dim3(threads),
                                    std::max(sums, near), stream, call, dim3(cluster, 1, 1));
  };
  const auto choose = [&]<class H>(H) {
    call.last      ? launch(joined_attention<H, true, false>)
    : call.grouped ? launch(joined_attention<H, false, true>)
                   : launch(joined_attention<H, false, false>);
  };
  call.half == RowHalf::fp16 ? choose(__half{}) : choose(__nv_bfloat16{});
}

}  // namespace tandem
