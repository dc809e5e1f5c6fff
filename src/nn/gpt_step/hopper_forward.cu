// Attention forward: tiles of queries stay, those of keys and values pass by. And which block does
// what, for all kernels.
#include "nn/gpt_step/hopper_place.cuh"

namespace tandem {
namespace {

// One more than are fetched ahead of the one in use: the tile before is still being multiplied.
constexpr int stages = 4;

template <int groups, bool causal>
__global__ void __launch_bounds__(groups* warpgroup_threads, 2)
    attention_forward(const HopperAttention call) {
#ifdef TANDEM_HOPPER
  constexpr int threads = groups * warpgroup_threads, rows = groups * tile_side;
  const Place at(call, call.tiles.queries[blockIdx.y]);
  if (at.first >= at.length) return;
  char* shared = aligned_shared();
  const uint32_t queries = shared_address(shared), ring = queries + groups * tile_bytes;
  const TileReader<threads> query(at.of_qkv(call.qkv, 0), at.stride, at.length);
  const TileReader<threads> key(at.of_qkv(call.qkv, 1), at.stride, at.length);
  const TileReader<threads> value(at.of_qkv(call.qkv, 2), at.stride, at.length);
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
  for (int g = 0; g < groups; ++g) query.fetch(queries + g * tile_bytes, at.first + g * tile_side);
  fetch(0);
  fetch(1);

  Accumulator out = {};
  float most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  constexpr float scale = score_scale * log2_e;
  for (int block = 0; block < blocks; ++block) {
    await_fetch<1>();
    fetch(block + 2);
    if (block > my_last) continue;
    const uint32_t keys = ring + block % stages * 2 * tile_bytes;
    Accumulator score;
    open_products();
    multiply_rows(score, queries + at.group * tile_bytes, keys);
    close_products();
    await_products<0>();  // also for the sums of the tile before, which went on meanwhile
    settle(score);
    settle(out);
    if (block == my_last) {
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (is_unseen<causal>(at, i, block)) score[i] = -INFINITY;
    }
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = most[half];
#pragma unroll
      for (int j = 0; j < 8; ++j)
        largest = fmaxf(largest, fmaxf(score[4 * j + 2 * half], score[4 * j + 2 * half + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      shrink[half] = power_of_two((most[half] - largest) * scale);
      most[half] = largest;
      sum[half] *= shrink[half];
      const float down = largest * scale;
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = score[4 * j + 2 * half + e];
          x = power_of_two(x * scale - down);
          sum[half] += x;
        }
    }
    LeftSide share;
    to_left_side(score, share);
    if (__any_sync(~0u, shrink[0] != 1.f || shrink[1] != 1.f)) {
#pragma unroll
      for (int i = 0; i < 32; ++i) out[i] *= shrink[i % 4 / 2];
    }
    open_products();
    multiply_columns(out, share, keys + tile_bytes);
    close_products();
  }
  await_products<0>();
  settle(out);
  __syncthreads();
  if (my_last < 0) return;
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
    sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
    inverse[half] = 1.f / sum[half];
    const int row = mine + at.row + 8 * half;
    if (at.lane % 4 == 0 && row < at.length)
      at.of_numbers(call.logsumexp, call.places)[row] = most[half] * scale + __log2f(sum[half]);
  }
  store_result(out, inverse[0], inverse[1], shared + at.group * tile_bytes, at.of_out(call.out),
               at.out_stride, mine, at.length);
#endif
}

// One block for the queries' tiles, one for the keys'.
__global__ void __launch_bounds__(256)
    plan_tiles(const int32_t* starts, int sequences, AttentionTiles to, int query_rows,
               int key_rows, int most_queries, int most_keys) {
  constexpr int sorted = 3000;  // of more, the order does not matter
  __shared__ int4 tiles[sorted];
  __shared__ int count;
  const bool of_queries = blockIdx.x == 0;
  const int rows = of_queries ? query_rows : key_rows;
  int4* out = of_queries ? to.queries : to.keys;
  int before = 0;
  for (int sequence = 0; sequence < sequences; ++sequence) {
    const int start = starts[sequence], length = starts[sequence + 1] - start;
    const int here = (length + rows - 1) / rows;
    for (int i = threadIdx.x; i < here; i += blockDim.x) {
      const int first = i * rows;
      const int work = of_queries ? min(first + rows, length) : length - first;
      const int4 tile{start, length, first, work};
      if (before + i < sorted) {
        tiles[before + i] = tile;
      } else {
        out[before + i] = tile;
      }
    }
    before += here;
  }
  if (threadIdx.x == 0) count = before;
  __syncthreads();
  const int mine = min(count, sorted);
  for (int i = threadIdx.x; i < mine; i += blockDim.x) {
    int rank = 0;
    for (int j = 0; j < mine; ++j)
      rank += tiles[j].w > tiles[i].w || (tiles[j].w == tiles[i].w && j < i);
    out[rank] = tiles[i];
  }
  const int most = of_queries ? most_queries : most_keys;
  for (int i = count + static_cast<int>(threadIdx.x); i < most; i += blockDim.x)
    out[i] = int4{0, 0, 0, 0};
}

// Never launched: its shared memory tells which code was loaded, that with Hopper's own
// instructions or another.
__global__ void tell_features(int* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  __shared__ int marker[16];
  marker[threadIdx.x % 16] = *out;
  __syncthreads();
  *out = marker[0];
#endif
}

}  // namespace

bool hopper_attention_runs() {
  cudaFuncAttributes attributes{};
  C10_CUDA_CHECK(cudaFuncGetAttributes(&attributes, tell_features));
  return attributes.sharedSizeBytes > 0;
}

void launch_plan_tiles(const int32_t* starts, int sequences, int places,
                       const AttentionTiles& tiles, cudaStream_t stream) {
  plan_tiles<<<2, 256, 0, stream>>>(
      starts, sequences, tiles, query_tile_rows, key_tile_rows,
      static_cast<int>(attention_tiles(places, sequences, query_tile_rows)),
      static_cast<int>(attention_tiles(places, sequences, key_tile_rows)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void launch_hopper_attention(const HopperAttention& call, cudaStream_t stream) {
  const WorkNote note = attention_note("tandem::attention_forward", call, 2, 4);
  launch_tiles(
      call.causal ? attention_forward<query_groups, true> : attention_forward<query_groups, false>,
      call, query_groups, query_groups + 2 * stages, 0, stream);
}

}  // namespace tandem
