// Attention backward in two kernels that compute the scores again.
#include "nn/float_bits.h"
#include "nn/gpt_step/hopper_place.cuh"

namespace tandem {
namespace {

constexpr int stages = 3;

// Gradient of the queries, and for the other kernel the sums over each row of out * gradient.
template <int groups, bool causal>
__global__ void __launch_bounds__(groups* warpgroup_threads, 2)
    query_backward(const HopperAttention call) {
#ifdef TANDEM_HOPPER
  constexpr int threads = groups * warpgroup_threads, rows = groups * tile_side;
  const Place at(call, call.tiles.queries[blockIdx.y]);
  float* column_sums = call.query_sums + blockIdx.y * at.out_stride + at.head * tile_side;
  if (at.first >= at.length) {
    if (threadIdx.x < tile_side) column_sums[threadIdx.x] = 0;
    return;
  }
  char* shared = aligned_shared();
  const uint32_t queries = shared_address(shared), flows = queries + groups * tile_bytes;
  const uint32_t ring = flows + groups * tile_bytes;
  const TileReader<threads> query(at.of_qkv(call.qkv, 0), at.stride, at.length);
  const TileReader<threads> key(at.of_qkv(call.qkv, 1), at.stride, at.length);
  const TileReader<threads> value(at.of_qkv(call.qkv, 2), at.stride, at.length);
  const bf16* flow = at.of_out(call.gradient);
  const TileReader<threads> flow_reader(flow, at.out_stride, at.length);
  const int mine = at.first + at.group * tile_side;
  const int blocks =
      ((causal ? min(at.first + rows, at.length) : at.length) + tile_side - 1) / tile_side;
  const int my_last = mine < at.length ? (causal ? mine / tile_side : blocks - 1) : -1;

  const auto fetch = [&](int block) {
    if (block < blocks) {
      const uint32_t to = ring + block % stages * 2 * tile_bytes;
      key.fetch(to, block * tile_side);
      value.fetch(to + tile_bytes, block * tile_side);
    }
    end_copies();
  };
#pragma unroll
  for (int g = 0; g < groups; ++g) {
    query.fetch(queries + g * tile_bytes, at.first + g * tile_side);
    flow_reader.fetch(flows + g * tile_bytes, at.first + g * tile_side);
  }
  fetch(0);
  fetch(1);

  // Two lanes a row, each half of it: lanes 2 r and 2 r + 1 have row r of the warp's sixteen.
  float dot = 0;
  {
    const int row = mine + at.row - at.lane / 4 + at.lane / 2;
    if (row < at.length) {
      const bf16* a = at.of_out(static_cast<const bf16*>(call.out)) + row * at.out_stride;
      const bf16* b = flow + row * at.out_stride;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 32 * (at.lane % 2) + 8 * i;
        const uint4 x = *reinterpret_cast<const uint4*>(a + column);
        const uint4 y = *reinterpret_cast<const uint4*>(b + column);
        const uint32_t u[4] = {x.x, x.y, x.z, x.w}, v[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
        for (int w = 0; w < 4; ++w)
          dot += first_of_pair(u[w]) * first_of_pair(v[w]) +
                 second_of_pair(u[w]) * second_of_pair(v[w]);
      }
    }
    dot += __shfl_xor_sync(~0u, dot, 1);
    if (at.lane % 2 == 0 && row < at.length) at.of_numbers(call.dots, call.places)[row] = dot;
  }
  float dots[2], sums[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    dots[half] = __shfl_sync(~0u, dot, 2 * (at.lane / 4 + 8 * half));
    // Rows behind the end have scores of 0: with the sum of a real row, far below zero, they would
    // weigh infinitely much, and the column sums have them as well.
    const int row = mine + at.row + 8 * half;
    sums[half] = row < at.length ? at.of_numbers(call.logsumexp, call.places)[row] : INFINITY;
  }

  Accumulator out = {};
  constexpr float scale = score_scale * log2_e;
  for (int block = 0; block < blocks; ++block) {
    await_fetch<1>();
    fetch(block + 2);
    if (block > my_last) continue;
    const uint32_t keys = ring + block % stages * 2 * tile_bytes;
    Accumulator score, slope;
    open_products();
    multiply_rows(score, queries + at.group * tile_bytes, keys);
    close_products();
    multiply_rows(slope, flows + at.group * tile_bytes, keys + tile_bytes);
    close_products();
    await_products<1>();
    settle(score);
#pragma unroll
    for (int i = 0; i < 32; ++i) score[i] = power_of_two(score[i] * scale - sums[i % 4 / 2]);
    if (block == my_last) {
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (is_unseen<causal>(at, i, block)) score[i] = 0;
    }
    await_products<0>();
    settle(slope);
#pragma unroll
    for (int i = 0; i < 32; ++i) score[i] *= slope[i] - dots[i % 4 / 2];
    LeftSide left;
    to_left_side(score, left);
    open_products();
    multiply_columns(out, left, keys);
    close_products();
    await_products<0>();
    settle(out);
  }
  __syncthreads();
  write_column_sums<groups>(
      out, score_scale, reinterpret_cast<float*>(shared + 2 * groups * tile_bytes), column_sums);
  if (my_last < 0) return;
  store_result(out, score_scale, score_scale, shared + at.group * tile_bytes,
               at.of_qkv(call.qkv_gradient, 0), at.stride, mine, at.length);
#endif
}

// Gradients of keys and values: tiles of keys stay, those of queries pass by. Scores are turned:
// rows are keys.
template <int groups, bool causal>
__global__ void __launch_bounds__(groups* warpgroup_threads, groups == 1 ? 3 : 1)
    key_value_backward(const HopperAttention call) {
#ifdef TANDEM_HOPPER
  constexpr int threads = groups * warpgroup_threads;
  constexpr int stage_bytes = 2 * tile_bytes + 1024;  // with 64 sums and 64 dots
  const Place at(call, call.tiles.keys[blockIdx.y]);
  float* column_sums = call.value_sums + blockIdx.y * at.out_stride + at.head * tile_side;
  if (at.first >= at.length) {
    if (threadIdx.x < tile_side) column_sums[threadIdx.x] = 0;
    return;
  }
  char* shared = aligned_shared();
  const uint32_t keys = shared_address(shared), values = keys + groups * tile_bytes;
  const uint32_t ring = values + groups * tile_bytes;
  char* ring_bytes = shared + 2 * groups * tile_bytes;
  const TileReader<threads> query(at.of_qkv(call.qkv, 0), at.stride, at.length);
  const TileReader<threads> flow(at.of_out(call.gradient), at.out_stride, at.length);
  const float* all_sums = at.of_numbers(call.logsumexp, call.places);
  const float* all_dots = at.of_numbers(call.dots, call.places);
  const int mine = at.first + at.group * tile_side;
  const int begin = causal ? at.first / tile_side : 0;
  const int end = (at.length + tile_side - 1) / tile_side;
  const int my_first = causal ? mine / tile_side : 0;  // on the diagonal
  // Without a diagonal, nothing else keeps the rows behind the sequence's end out of the sums.
  const int my_rows = causal ? tile_side : at.length - mine;

  const auto fetch = [&](int block) {
    if (block < end) {
      const int stage = (block - begin) % stages, first = block * tile_side;
      const uint32_t to = ring + stage * stage_bytes;
      query.fetch(to, first);
      flow.fetch(to + tile_bytes, first);
      float* numbers = reinterpret_cast<float*>(ring_bytes + stage * stage_bytes + 2 * tile_bytes);
      if (threadIdx.x < 2 * tile_side) {
        const bool of_sums = threadIdx.x < tile_side;
        const int row = min(first + static_cast<int>(threadIdx.x) % tile_side, at.length - 1);
        fetch_number(numbers + threadIdx.x, (of_sums ? all_sums : all_dots) + row);
      }
    }
    end_copies();
  };
#pragma unroll
  for (int g = 0; g < groups; ++g) {
    const int first = at.first + g * tile_side;
    TileReader<threads>(at.of_qkv(call.qkv, 1), at.stride, at.length)
        .fetch(keys + g * tile_bytes, first);
    TileReader<threads>(at.of_qkv(call.qkv, 2), at.stride, at.length)
        .fetch(values + g * tile_bytes, first);
  }
  fetch(begin);
  fetch(begin + 1);

  Accumulator key_out = {}, value_out = {};
  constexpr float scale = score_scale * log2_e;
  for (int block = begin; block < end; ++block) {
    await_fetch<1>();
    fetch(block + 2);
    if (block < my_first) continue;
    const int stage = (block - begin) % stages;
    const uint32_t queries = ring + stage * stage_bytes, flows = queries + tile_bytes;
    const float2* sums =
        reinterpret_cast<const float2*>(ring_bytes + stage * stage_bytes + 2 * tile_bytes) +
        at.lane % 4;
    const float2* dots = sums + tile_side / 2;
    Accumulator score, slope;
    open_products();
    multiply_rows(score, keys + at.group * tile_bytes, queries);
    close_products();
    multiply_rows(slope, values + at.group * tile_bytes, flows);
    close_products();
    await_products<1>();
    settle(score);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float2 sum = sums[4 * j];
#pragma unroll
      for (int e = 0; e < 4; ++e)
        score[4 * j + e] = power_of_two(score[4 * j + e] * scale - (e % 2 ? sum.y : sum.x));
    }
    if ((causal && block == my_first) || block == end - 1 || my_rows < tile_side) {
      // Columns are queries here: those before the key, and those behind the sequence's end.
      const int left_over = at.length - block * tile_side;
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const int column = 8 * (i / 4) + 2 * (at.lane % 4) + i % 2;
        const int row = at.row + 8 * (i % 4 / 2);
        const bool past = causal && block == my_first && column < row;
        if (past || column >= left_over || row >= my_rows) score[i] = 0;
      }
    }
    LeftSide left;
    to_left_side(score, left);
    await_products<0>();
    settle(slope);
    open_products();
    multiply_columns(value_out, left, flows);
    close_products();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float2 dot = dots[4 * j];
#pragma unroll
      for (int e = 0; e < 4; ++e) score[4 * j + e] *= slope[4 * j + e] - (e % 2 ? dot.y : dot.x);
    }
    LeftSide second;
    to_left_side(score, second);
    open_products();
    multiply_columns(key_out, second, queries);
    close_products();
    await_products<0>();
    settle(value_out);
    settle(key_out);
  }
  __syncthreads();
  write_column_sums<groups>(value_out, 1, reinterpret_cast<float*>(ring_bytes), column_sums);
  if (mine >= at.length) return;
  store_result(key_out, score_scale, score_scale, shared + at.group * tile_bytes,
               at.of_qkv(call.qkv_gradient, 1), at.stride, mine, at.length);
  store_result(value_out, 1, 1, shared + at.group * tile_bytes, at.of_qkv(call.qkv_gradient, 2),
               at.stride, mine, at.length);
#endif
}

}  // namespace

void launch_hopper_attention_backward(const HopperAttention& call, cudaStream_t stream) {
  {
    const WorkNote note = attention_note("tandem::query_backward", call, 3, 6);
    launch_tiles(
        call.causal ? query_backward<query_groups, true> : query_backward<query_groups, false>,
        call, query_groups, 2 * query_groups + 2 * stages, 0, stream);
  }
  const WorkNote note = attention_note("tandem::key_value_backward", call, 4, 6);
  launch_tiles(
      call.causal ? key_value_backward<key_groups, true> : key_value_backward<key_groups, false>,
      call, key_groups, 2 * key_groups + 2 * stages, stages * 1024, stream);
}

}  // namespace tandem
