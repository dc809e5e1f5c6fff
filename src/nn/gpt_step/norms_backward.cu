// Norms of the backward pass with what stands beside them: the residual's gradient, dropout, sums
// of weight gradients. A group of 128 threads a row; blocks walk over the rows and keep the sums of
// their columns in registers.
#include <c10/cuda/CUDAException.h>

#include "nn/gpt_step/fp8.cuh"
#include "nn/shared_memory.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int groups = 4;
constexpr int threads = groups * group_threads;
constexpr float epsilon = 1e-5f;

// The columns of one thread: n times eight.
template <int n>
struct Columns {
  Eight at[n];
};

template <int n, class From>
__device__ Columns<n> load_row(const From* row, const RowGroup& group, int width) {
  Columns<n> out;
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const int column = 8 * group.thread + 1024 * j;
    if (column < width) {
      out.at[j] = load_eight(row + column);
    } else {
      out.at[j] = {};
    }
  }
  return out;
}
template <int n, class To>
__device__ void store_row(To* row, const Columns<n>& values, const RowGroup& group, int width) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const int column = 8 * group.thread + 1024 * j;
    if (column < width) store_eight(row + column, values.at[j]);
  }
}
template <int n, class Do>
__device__ inline void each(const Do& act) {
#pragma unroll
  for (int j = 0; j < n; ++j)
#pragma unroll
    for (int i = 0; i < 8; ++i) act(j, i);
}
template <int n>
__device__ void drop_row(Columns<n>& x, const Dropout& dropout, uint64_t key, int place,
                         const RowGroup& group, int width) {
#pragma unroll
  for (int j = 0; j < n; ++j)
    drop_eight(x.at[j], dropout, key, place, 8 * group.thread + 1024 * j, width);
}

// Mean and 1 / deviation; columns beyond the width are zeros.
template <int n>
__device__ float2 row_stats(const Columns<n>& x, const RowGroup& group, int width) {
  float sum = 0, squares = 0;
  each<n>([&](int j, int i) { sum += x.at[j].v[i]; });
  const float mean = group.sum(sum, 0, 0).x / static_cast<float>(width);
  each<n>([&](int j, int i) {
    const float away = x.at[j].v[i] - mean;
    if (8 * group.thread + 1024 * j < width) squares += away * away;
  });
  const float variance = group.sum(squares, 0, 1).x / static_cast<float>(width);
  return {mean, rsqrtf(variance + epsilon)};
}

// The sums of a block's groups in order, then to `partial` [blocks, count, width].
template <int n, int count>
__device__ void write_partial(const Columns<n> (&sums)[count], float* partial,
                              const RowGroup& group, int width) {
  extern __shared__ float shared[];  // [groups][width]
  for (int k = 0; k < count; ++k) {
    __syncthreads();
    store_row(shared + group.group * width, sums[k], group, width);
    __syncthreads();
    for (int column = threadIdx.x; column < width; column += threads) {
      float sum = 0;
#pragma unroll
      for (int g = 0; g < groups; ++g) sum += shared[g * width + column];
      partial[(static_cast<int64_t>(blockIdx.x) * count + k) * width + column] = sum;
    }
  }
}

// The rows a group works on next, copied into shared memory ahead of it. Each thread reads only
// what it copied itself, so nobody waits for anybody. [stages][3 matrices][D] a group.
constexpr int ahead = 2, stages = ahead + 1;

template <int n>
struct RowsAhead {
  bf16* mine;  // of this group
  const bf16* matrix[3];
  int width;

  __device__ void fetch(int stage, int place, int places, int thread) const {
    if (place < places) {
#pragma unroll
      for (int m = 0; m < 3; ++m)
#pragma unroll
        for (int j = 0; j < n; ++j) {
          const int column = 8 * thread + 1024 * j;
          if (column >= width) continue;
          copy_ahead(mine + (stage * 3 + m) * width + column,
                     matrix[m] + static_cast<int64_t>(place) * width + column);
        }
    }
    end_copies();
  }
  __device__ Eight get(int stage, int m, int column) const {
    return load_eight(mine + (stage * 3 + m) * width + column);
  }
};

template <int n, bool in_fp8>
__global__ void __launch_bounds__(threads, n == 1 ? 2 : 1)
    norm_backward(const NormBackwardCall call, const Fp8Rows fp8) {
  __shared__ float2 scratch[groups * 8];
  __shared__ float largest[groups * 8];
  extern __shared__ float shared[];
  const RowGroup group(scratch);
  const int width = call.width, step = gridDim.x * groups;
  const float share = 1.f / static_cast<float>(width);
  const uint64_t key = call.dropout.threshold ? dropout_key(call.dropout) : 0;
  const RowsAhead<n> rows{
      reinterpret_cast<bf16*>(shared) + static_cast<int64_t>(group.group) * stages * 3 * width,
      {call.x, call.gradient, call.residual},
      width};
  PackedEight weights[n], shifts[n];
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const int column = 8 * group.thread + 1024 * j;
    weights[j] = column < width ? load_packed(call.norm.weight + column) : PackedEight{};
    shifts[j] = column < width ? load_packed(call.norm.bias + column) : PackedEight{};
  }
  Columns<n> sums[3] = {};
  int place = blockIdx.x * groups + group.group, stage = 0, turn = 0;
#pragma unroll
  for (int i = 0; i < ahead; ++i) rows.fetch(i, place + i * step, call.places, group.thread);
  float2 next_stats = call.stats[min(place, call.places - 1)];
  for (; place < call.places; place += step, ++turn) {
    rows.fetch(stage == 0 ? ahead : stage - 1, place + ahead * step, call.places, group.thread);
    const float2 stats = next_stats;
    next_stats = call.stats[min(place + step, call.places - 1)];
    await_copies<ahead>();
    Columns<n> away;
    float mean = 0, product = 0;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const int column = 8 * group.thread + 1024 * j;
      if (column >= width) continue;
      const Eight x = rows.get(stage, 0, column), gradient = rows.get(stage, 1, column);
      const Eight weight = unpack(weights[j]);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float slope = gradient.v[i] * weight.v[i];
        away.at[j].v[i] = (x.v[i] - stats.x) * stats.y;
        mean += slope;
        product += slope * away.at[j].v[i];
        sums[0].at[j].v[i] += gradient.v[i] * away.at[j].v[i];
        sums[1].at[j].v[i] += gradient.v[i];
      }
    }
    const float2 both = group.sum(mean, product, turn);
    mean = both.x * share, product = both.y * share;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const int column = 8 * group.thread + 1024 * j;
      if (column >= width) continue;
      const int64_t at = static_cast<int64_t>(place) * width + column;
      const Eight gradient = rows.get(stage, 1, column), weight = unpack(weights[j]);
      Eight out = rows.get(stage, 2, column);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        out.v[i] += stats.y * (gradient.v[i] * weight.v[i] - mean - away.at[j].v[i] * product);
      store_eight(call.out + at, out);
      if (call.dropout.threshold) {
        drop_eight(out, call.dropout, key, place, column, width);
        store_eight(call.masked + at, out);
      }
      const Eight shift = unpack(shifts[j]);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        sums[2].at[j].v[i] += out.v[i];
        away.at[j].v[i] = away.at[j].v[i] * weight.v[i] + shift.v[i];
      }
      store_eight(call.normed + at, away.at[j]);
      if constexpr (in_fp8) away.at[j] = out;  // kept until the row's largest is known
    }
    if constexpr (in_fp8) {
      static_assert(n == 1);
      const bool mine = 8 * group.thread < width;
      const float found = mine ? largest_of(away.at[0]) : 0.f;
      const Fp8Scale scale(group.largest(found, largest + 8 * group.group, turn));
      if (mine)
        store_fp8(fp8.data + static_cast<int64_t>(place) * width + 8 * group.thread, away.at[0],
                  scale.factor);
      if (group.thread == 0) fp8.scales[place] = scale.scale;
    }
    stage = stage + 1 == stages ? 0 : stage + 1;
  }
  write_partial(sums, call.partial, group, width);
}

// gradient of normed values -> gradient of the norm's input; x becomes the values without scale.
template <int n>
__device__ void through_norm(Columns<n>& gradient, const Columns<n>& away, float spread,
                             const Columns<n>& weight, Columns<n>& weight_sum, Columns<n>& bias_sum,
                             const RowGroup& group, int width) {
  float mean = 0, product = 0;
  each<n>([&](int j, int i) {
    weight_sum.at[j].v[i] += gradient.at[j].v[i] * away.at[j].v[i];
    bias_sum.at[j].v[i] += gradient.at[j].v[i];
    gradient.at[j].v[i] *= weight.at[j].v[i];
    mean += gradient.at[j].v[i];
    product += gradient.at[j].v[i] * away.at[j].v[i];
  });
  group.sync();  // `scratch` may still be read from the sums before
  const float2 both = group.sum(mean, product, 0);
  group.sync();
  const float share = 1.f / static_cast<float>(width);
  each<n>([&](int j, int i) {
    gradient.at[j].v[i] =
        spread * (gradient.at[j].v[i] - both.x * share - away.at[j].v[i] * both.y * share);
  });
}

template <int n>
__global__ void __launch_bounds__(threads, 1)
    last_norms_backward(const LastNormsBackwardCall call) {
  __shared__ float2 scratch[groups * 8];
  const RowGroup group(scratch);
  const int width = call.width;
  const uint64_t key = call.dropout.threshold ? dropout_key(call.dropout) : 0;
  const Columns<n> last = load_row<n>(call.last.weight, group, width);
  const Columns<n> last_shift = load_row<n>(call.last.bias, group, width);
  const Columns<n> final = load_row<n>(call.final.weight, group, width);
  Columns<n> sums[5] = {};
  for (int place = blockIdx.x * groups + group.group; place < call.places;
       place += gridDim.x * groups) {
    const int64_t row = static_cast<int64_t>(place) * width;
    const int slot = call.packing.slot[place];
    Columns<n> gradient{};
    if (slot >= 0) {
      gradient = load_row<n>(call.gradient + static_cast<int64_t>(slot) * width, group, width);
      Columns<n> x = load_row<n>(call.x + row, group, width);
      const float2 first = row_stats(x, group, width);
      Columns<n> middle;
      each<n>([&](int j, int i) {
        const bool inside = 8 * group.thread + 1024 * j < width;
        x.at[j].v[i] = inside ? (x.at[j].v[i] - first.x) * first.y : 0.f;
        middle.at[j].v[i] = x.at[j].v[i] * last.at[j].v[i] + last_shift.at[j].v[i];
      });
      const float2 second = row_stats(middle, group, width);
      each<n>([&](int j, int i) {
        const bool inside = 8 * group.thread + 1024 * j < width;
        middle.at[j].v[i] = inside ? (middle.at[j].v[i] - second.x) * second.y : 0.f;
      });
      through_norm(gradient, middle, second.y, final, sums[2], sums[3], group, width);
      through_norm(gradient, x, first.y, last, sums[0], sums[1], group, width);
    }
    store_row(call.out + row, gradient, group, width);
    if (call.dropout.threshold) {
      drop_row(gradient, call.dropout, key, place, group, width);
      store_row(call.masked + row, gradient, group, width);
    }
    each<n>([&](int j, int i) { sums[4].at[j].v[i] += gradient.at[j].v[i]; });
  }
  write_partial(sums, call.partial, group, width);
}

// Calls `act` with the number of eights a thread holds as a constant.
template <class Act>
void by_width(int width, const Act& act) {
  if (width <= 1024) return act(std::integral_constant<int, 1>());
  act(std::integral_constant<int, 2>());
}
static_assert(widest == 2 * 1024);

template <class Kernel, class Call, class... More>
void launch_summing(Kernel kernel, const Call& call, size_t bytes_ahead, cudaStream_t stream,
                    const More&... more) {
  // At the end, the groups' sums stand where the rows ahead were.
  const size_t shared =
      groups * static_cast<size_t>(call.width) * std::max(sizeof(float), bytes_ahead);
  if (shared > 48 * 1024)
    C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  kernel<<<sum_blocks(call.places), threads, shared, stream>>>(call, more...);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

void launch_norm_backward(const NormBackwardCall& call, cudaStream_t stream, const Fp8Rows* fp8) {
  const double matrices = 4 + (call.masked ? 1 : 0) + (call.normed ? 1 : 0) + (fp8 ? 0.5 : 0);
  const WorkNote note("tandem::norm_backward", 0, 2.0 * matrices * call.places * call.width);
  by_width(call.width, [&](auto n) {
    constexpr size_t ahead_bytes = 3 * stages * sizeof(uint16_t);
    if constexpr (1024 * n <= widest_fp8) {
      if (fp8) return launch_summing(norm_backward<n, true>, call, ahead_bytes, stream, *fp8);
    }
    launch_summing(norm_backward<n, false>, call, ahead_bytes, stream, Fp8Rows{});
  });
}
void launch_last_norms_backward(const LastNormsBackwardCall& call, cudaStream_t stream) {
  const int matrices = 3 + (call.masked ? 1 : 0);
  const WorkNote note("tandem::last_norms_backward", 0, 2.0 * matrices * call.places * call.width);
  by_width(call.width, [&](auto n) { launch_summing(last_norms_backward<n>, call, 0, stream); });
}

}  // namespace tandem
