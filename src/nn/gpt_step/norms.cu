// Norms of the forward pass with what stands before them: residual, bias and dropout. A warp a row.
#include <c10/cuda/CUDAException.h>

#include "nn/gpt_step/fp8.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int warps = 8;
constexpr float epsilon = 1e-5f;

// A lane's columns: 8 lane + 256 j and the seven behind, j < n. Kept packed, so that many rows are
// under way at a time.
template <int n>
struct LaneColumns {
  PackedEight at[n];

  static __device__ int column(int j) { return 8 * (threadIdx.x % 32) + 256 * j; }
  __device__ void load(const bf16* row, int width) {
#pragma unroll
    for (int j = 0; j < n; ++j)
      at[j] = column(j) < width ? load_packed(row + column(j)) : PackedEight{0, 0, 0, 0};
  }
};

__device__ inline float warp_total(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

// Mean and 1 / deviation of a row.
template <int n>
__device__ float2 row_stats(const LaneColumns<n>& x, int width) {
  float sum = 0, squares = 0;
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const Eight values = unpack(x.at[j]);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += values.v[i];
  }
  const float mean = warp_total(sum) / static_cast<float>(width);
#pragma unroll
  for (int j = 0; j < n; ++j) {
    if (x.column(j) >= width) continue;
    const Eight values = unpack(x.at[j]);
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += (values.v[i] - mean) * (values.v[i] - mean);
  }
  return {mean, rsqrtf(warp_total(squares) / static_cast<float>(width) + epsilon)};
}

__device__ inline Eight normalised(Eight x, const float2& stats, const NormWeights& norm,
                                   int column) {
  const Eight weight = load_eight(norm.weight + column), shift = load_eight(norm.bias + column);
#pragma unroll
  for (int i = 0; i < 8; ++i) x.v[i] = (x.v[i] - stats.x) * stats.y * weight.v[i] + shift.v[i];
  return x;
}

// The norm of a row in 8-bit floats.
template <int n>
__device__ void store_normed(const LaneColumns<n>& x, const float2& stats, const NormWeights& norm,
                             int place, int width, const Fp8Rows& out) {
  Eight normed[n];
  float largest = 0;
#pragma unroll
  for (int j = 0; j < n; ++j) {
    if (x.column(j) >= width) continue;
    normed[j] = normalised(unpack(x.at[j]), stats, norm, x.column(j));
    largest = fmaxf(largest, largest_of(normed[j]));
  }
  const Fp8Scale scale(warp_largest(largest));
#pragma unroll
  for (int j = 0; j < n; ++j)
    if (x.column(j) < width)
      store_fp8(out.data + static_cast<int64_t>(place) * width + x.column(j), normed[j],
                scale.factor);
  if (threadIdx.x % 32 == 0) out.scales[place] = scale.scale;
}

template <int n, bool in_fp8>
__global__ void __launch_bounds__(32 * warps, n <= 4 ? 4 : 1)
    add_norm(const AddNormCall call, const Fp8Rows fp8) {
  const int place = blockIdx.x * warps + threadIdx.x / 32, width = call.width;
  if (place >= call.places) return;
  const int64_t row = static_cast<int64_t>(place) * width;
  LaneColumns<n> x;
  x.load(call.x + row, width);
  if (call.branch) {
    LaneColumns<n> branch;
    branch.load(call.branch + row, width);
    const uint64_t key = call.dropout.threshold ? dropout_key(call.dropout) : 0;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const int column = x.column(j);
      if (column >= width) continue;
      const Eight bias = load_eight(call.bias + column), old = unpack(x.at[j]);
      Eight added = unpack(branch.at[j]);
#pragma unroll
      for (int i = 0; i < 8; ++i) added.v[i] += bias.v[i];
      if (call.dropout.threshold) drop_eight(added, call.dropout, key, place, column, width);
#pragma unroll
      for (int i = 0; i < 8; ++i) added.v[i] += old.v[i];
      // The norm reads what the residual stream keeps: its rounded value.
      x.at[j] = pack(added);
      *reinterpret_cast<PackedEight*>(call.sum + row + column) = x.at[j];
    }
  }
  if (!in_fp8 && !call.normed) return;
  const float2 stats = row_stats(x, width);
  if constexpr (in_fp8) {
    store_normed(x, stats, call.norm, place, width, fp8);
  } else {
#pragma unroll
    for (int j = 0; j < n; ++j)
      if (x.column(j) < width)
        store_eight(call.normed + row + x.column(j),
                    normalised(unpack(x.at[j]), stats, call.norm, x.column(j)));
  }
  if (threadIdx.x % 32 == 0) call.stats[place] = stats;
}

template <int n>
__global__ void __launch_bounds__(32 * warps) last_norms(const LastNormsCall call) {
  const int slot = blockIdx.x * warps + threadIdx.x / 32, width = call.width;
  if (slot >= call.slots) return;
  const int place = call.packing.place[slot];
  LaneColumns<n> x{};
  if (place >= 0) {
    x.load(call.x + static_cast<int64_t>(place) * width, width);
    for (const NormWeights& norm : {call.last, call.final}) {
      const float2 stats = row_stats(x, width);
#pragma unroll
      for (int j = 0; j < n; ++j)
        if (x.column(j) < width)
          x.at[j] = pack(normalised(unpack(x.at[j]), stats, norm, x.column(j)));
    }
  }
#pragma unroll
  for (int j = 0; j < n; ++j)
    if (x.column(j) < width)
      *reinterpret_cast<PackedEight*>(call.out + static_cast<int64_t>(slot) * width + x.column(j)) =
          x.at[j];
}

// Calls `act` with the number of eights a lane holds as a constant.
template <class Act>
void by_lane_columns(int width, const Act& act) {
  if (width <= 256) return act(std::integral_constant<int, 1>());
  if (width <= 512) return act(std::integral_constant<int, 2>());
  if (width <= 1024) return act(std::integral_constant<int, 4>());
  act(std::integral_constant<int, 8>());
}
static_assert(widest == 8 * 256);

unsigned blocks_for(int rows) { return static_cast<unsigned>((rows + warps - 1) / warps); }

}  // namespace

void launch_add_norm(const AddNormCall& call, cudaStream_t stream, const Fp8Rows* fp8) {
  const double matrices = 1 + (call.branch ? 2 : 0) + (fp8 ? 0.5 : call.normed ? 1 : 0);
  const WorkNote note("tandem::add_norm", 0, 2.0 * matrices * call.places * call.width);
  by_lane_columns(call.width, [&](auto n) {
    const unsigned blocks = blocks_for(call.places);
    if constexpr (256 * n <= widest_fp8) {
      if (fp8) return add_norm<n, true><<<blocks, 32 * warps, 0, stream>>>(call, *fp8);
    }
    add_norm<n, false><<<blocks, 32 * warps, 0, stream>>>(call, {});
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void launch_last_norms(const LastNormsCall& call, cudaStream_t stream) {
  const WorkNote note("tandem::last_norms", 0, 4.0 * call.slots * call.width);
  by_lane_columns(call.width, [&](auto n) {
    last_norms<n><<<blocks_for(call.slots), 32 * warps, 0, stream>>>(call);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
