// Attention of a step in whole_step.cu: cluster c of two blocks makes head c mod H of row c / H.
// The parts of the positions (see attention_math.cuh) are shared out among the warps of both and
// merged by the first; speech's sums (see group_attention.cuh) are all made by the first.
#pragma once

#include <climits>
#include <type_traits>

#include "nn/rows/attention_math.cuh"
#include "nn/rows/group_attention.cuh"
#include "nn/rows/whole_step.h"
#include "nn/rows/whole_step_blocks.cuh"

namespace tandem::whole {

constexpr int threads = 256, warps = threads / 32, cluster = 2, heads = WholeStepSize::heads;
constexpr int pad = 64;                                                            // a head's width
constexpr int lanes = 8, each = 8, apart = 32 / lanes, unit = apart * unit_loads;  // of positions
constexpr int parts = attention_parts, groups = threads / lanes;
static_assert(WholeStepSize::width == heads * pad);

// Where a row is: its place, and the last position it attends to; -1 where there is none.
struct RowEnd {
  int place = -1, last = -1;
};

// Positions of one row and head, of which a lane reads 16 bytes each.
struct Sequence {
  const char *keys, *values;
  int last;

  __device__ Sequence(const void* all_keys, const void* all_values, int positions, RowEnd end)
      : last(end.last) {
    const int64_t head = blockIdx.x / cluster % heads;
    const int64_t start = (int64_t{max(end.place, 0)} * heads + head) * positions * pad * 2 +
                          threadIdx.x % lanes * 16;
    keys = static_cast<const char*>(all_keys) + start;
    values = static_cast<const char*>(all_values) + start;
  }
  __device__ int units() const { return last < 0 ? 0 : last / unit + 1; }
  __device__ int used() const { return min(units(), parts); }
  // The lane's first position in a unit.
  __device__ int start_of(int u) const { return u * unit + threadIdx.x % 32 / lanes; }
  // Asks the second-level cache for all positions but the row's own, by both blocks.
  __device__ void call_for_all() const {
    const char* first_keys = keys - threadIdx.x % lanes * 16;
    const char* first_values = values - threadIdx.x % lanes * 16;
    for (int at = blockIdx.x % cluster * threads + threadIdx.x; at < last;
         at += cluster * threads) {
      call_for_line(first_keys + int64_t{at} * pad * 2);
      call_for_line(first_values + int64_t{at} * pad * 2);
    }
  }
};

// Some positions of a lane.
struct Fetched {
  uint4 key[unit_loads], value[unit_loads];

  __device__ void load(const Sequence& from, int start, int step) {
#pragma unroll
    for (int i = 0; i < unit_loads; ++i) {
      const int64_t at = min(start + i * step, from.last);
      key[i] = __ldcg(reinterpret_cast<const uint4*>(from.keys + at * pad * 2));
      value[i] = __ldcg(reinterpret_cast<const uint4*>(from.values + at * pad * 2));
    }
  }
  // The row's own were made in this step and handed over: [2, D] halves from `own`, null: none.
  __device__ void take_own(const Sequence& from, int start, int step, const uint32_t* own) {
    if (!own || start + (unit_loads - 1) * step < from.last) return;
    const uint32_t* mine =
        own + (blockIdx.x / cluster % heads * pad + threadIdx.x % lanes * each) / 2;
    uint4 made[2];
    await_words(2, made, [&](int i) { return mine + i * heads * pad / 2; });
#pragma unroll
    for (int i = 0; i < unit_loads; ++i)
      if (start + i * step >= from.last) key[i] = made[0], value[i] = made[1];
  }
};

__device__ inline void await_query(const uint32_t* words, float (&query)[each]) {
  const uint32_t* mine = words + threadIdx.x % lanes * each;
  await_words(2, reinterpret_cast<uint4(&)[2]>(query), [&](int i) { return mine + 4 * i; });
}

// MusicGen's. `fetch` before the query is there, then `sum` and `merge`.
template <class H>
class PartAttention {
 public:
  using Memory = PartSums<pad>;
  // Units of a warp on their way at once, before the query is there and from then on. With three,
  // registers do not suffice (1.02 ms a step of MusicGen small instead of 0.66).
  static constexpr int depth = 2;

  __device__ explicit PartAttention(const Sequence& sequence)
      : from_(sequence),
        alone_(sequence.used() <= warps),
        part_(!alone_                     ? threadIdx.x / 32 * cluster + blockIdx.x % cluster
              : blockIdx.x % cluster == 0 ? threadIdx.x / 32
                                          : no_part) {}

  __device__ void fetch() {
#pragma unroll
    for (int k = 0; k < depth; ++k) load(k);
  }
  __device__ void sum(const uint32_t* queries, const uint32_t* own, Memory& near) {
    const int units = from_.units();
    float query[each];
    if (part_ < from_.used()) await_query(queries, query);
    RunningSum<each> total;
    int part = part_;
    for (int u = part_; u < units;) {
#pragma unroll
      for (int k = 0; k < depth; ++k) {
        if (u >= units) break;
        const int start = from_.start_of(u);
        if (u == units - 1) ahead_[k].take_own(from_, start, apart, own);
        const float no_scales[unit_loads] = {};
        total.template add_unit<H, lanes, false>(query, ahead_[k].key, ahead_[k].value, no_scales,
                                                 no_scales, start, from_.last);
        load(k);
        u += parts;
        if (u < units) continue;
        hand_in(total, near.sums[part]);
        total = {};
        u = part = part_behind(part);
      }
    }
    if (alone_) return __syncthreads();
    __syncwarp();
    arrive_at_cluster();
    wait_for_cluster();
  }
  // By the cluster's first block: elements 2 t and behind it in thread t, for t below 32.
  __device__ float2 merge(Memory& near) const { return near.merge(from_.used(), from_.units()); }

 private:
  // Of the warp's parts the next, or one that has no units.
  __device__ static int part_behind(int part) {
    const int next = part + warps * cluster;
    return next < parts ? next : no_part;
  }
  // The next unit that is not yet on its way: part after part.
  __device__ void load(int k) {
    if (loaded_ >= from_.units()) return;
    ahead_[k].load(from_, from_.start_of(loaded_), apart);
    loaded_ += parts;
    if (loaded_ >= from_.units()) loaded_ = loaded_part_ = part_behind(loaded_part_);
  }
  __device__ static void hand_in(RunningSum<each>& total, float* to) {
    const int lane = threadIdx.x % 32;
    total.template merge_groups<lanes>();
    if (lane >= lanes) return;
#pragma unroll
    for (int e = 0; e < each; ++e) store_in_block(to + lane * each + e, 0, total.result[e]);
    if (lane == 0) {
      store_in_block(to + pad, 0, total.largest);
      store_in_block(to + pad + 1, 0, total.sum);
    }
  }

  static constexpr int no_part = INT_MAX / 2;  // behind all units

  Sequence from_;
  bool alone_;  // so few parts that one block sums them, a warp each
  int part_, loaded_ = part_, loaded_part_ = part_;
  Fetched ahead_[depth];
};

// XTTS's, by the cluster's first block.
template <class H>
class GroupAttention {
 public:
  using Memory = WarpSums<pad>;
  static constexpr int depth = 4;  // as above

  __device__ explicit GroupAttention(const Sequence& sequence) : from_(sequence) {
    if (blockIdx.x % cluster != 0) from_.last = -1;
  }
  __device__ void fetch() {
#pragma unroll
    for (int k = 0; k < depth; ++k) load(k, start_of(k));
  }
  __device__ void sum(const uint32_t* queries, const uint32_t* own, Memory& near) {
    if (from_.last < 0) return;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t mine = 0xffu << (lane / lanes * lanes);
    float query[each];
    await_query(queries, query);
    GroupSum total;
    for (int first = 0; start_of(first) <= from_.last; first += depth) {
#pragma unroll
      for (int k = 0; k < depth; ++k) {
        const int start = start_of(first + k);
        if (start > from_.last) break;
        ahead_[k].take_own(from_, start, groups, own);
        float scores[unit_loads];
#pragma unroll
        for (int i = 0; i < unit_loads; ++i)
          scores[i] = GroupSum::score_of<H, lanes>(query, ahead_[k].key[i], mine);
#pragma unroll
        for (int i = 0; i < unit_loads; ++i)
          total.template add<H>(scores[i], ahead_[k].value[i], start + i * groups <= from_.last);
        load(k, start_of(first + k + depth));
      }
    }
    __syncwarp();
    total.template merge_groups<lanes>();
    if (lane < lanes) {
#pragma unroll
      for (int e = 0; e < each; ++e) near.result[warp][lane * each + e] = total.result[e];
      if (lane == 0) near.largest[warp] = total.largest, near.sum[warp] = total.sum;
    }
    __syncthreads();
  }
  __device__ float2 merge(const Memory& near) const {
    return threadIdx.x < 32 ? near.merge(threadIdx.x * 2) : float2{0, 0};
  }

 private:
  __device__ int start_of(int turn) const {
    return static_cast<int>(threadIdx.x) / lanes + turn * groups * unit_loads;
  }
  __device__ void load(int k, int start) {
    if (start <= from_.last) ahead_[k].load(from_, start, groups);
  }

  Sequence from_;
  Fetched ahead_[depth];
};

}  // namespace tandem::whole
