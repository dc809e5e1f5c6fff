// GroupNorm over the real frames of each row, in bfloat16: a block takes one group of one row, a
// thread eight channels of every `walkers`-th frame. What a block reads stays in shared memory for
// its later turns, as far as that reaches.
#include <c10/cuda/CUDAException.h>

#include <algorithm>

#include "nn/gpt_step/gpt_rows.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256, warps = threads / 32;
constexpr int most_kept_bytes = 96 << 10;  // two blocks a multiprocessor at least
constexpr float epsilon = 1e-5f;

// Sums of all threads, the same in each, in a fixed order.
__device__ float2 block_sum(float2 value) {
  __shared__ float2 of_warp[warps];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value.x += __shfl_xor_sync(~0u, value.x, offset);
    value.y += __shfl_xor_sync(~0u, value.y, offset);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float2 sum{0, 0};
#pragma unroll
  for (int w = 0; w < warps; ++w) sum.x += of_warp[w].x, sum.y += of_warp[w].y;
  return sum;
}

// Where a thread works. Threads beyond a whole number of frames have none.
struct Lane {
  int lanes, walkers, walker, column, real;
  int64_t first;  // of the thread's first eight values
  bool idle;
  __device__ Lane(const FrameNormCall& call)
      : lanes(call.channels / 8),
        walkers(threads / lanes),
        walker(threadIdx.x / lanes),
        column(blockIdx.x * call.channels + 8 * (threadIdx.x % lanes)),
        real(static_cast<int>(call.lengths[blockIdx.y])),
        first((static_cast<int64_t>(blockIdx.y) * call.frames + walker) * call.width + column),
        idle(walker >= walkers) {}
  __device__ int64_t place(const FrameNormCall& call, int turn) const {
    return first + static_cast<int64_t>(turn) * walkers * call.width;
  }
  // Turns over the frames before `end`.
  __device__ int turns(int end) const {
    return idle || walker >= end ? 0 : (end - walker + walkers - 1) / walkers;
  }
};

__device__ PackedEight again(const PackedEight* kept, int turn, int most, const bf16* from) {
  return turn < most ? kept[turn * threads + threadIdx.x] : load_packed(from);
}

__global__ void __launch_bounds__(threads) norm_forward(const FrameNormCall call) {
  extern __shared__ PackedEight kept[];
  const Lane lane(call);
  const int mine = lane.turns(lane.real);
  const float count = static_cast<float>(lane.real) * static_cast<float>(call.channels);
  float2 sum{0, 0};
  for (int turn = 0; turn < mine; ++turn) {
    const PackedEight bits = load_packed(call.x + lane.place(call, turn));
    if (turn < call.kept) kept[turn * threads + threadIdx.x] = bits;
    const Eight x = unpack(bits);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.x += x.v[i];
  }
  const float mean = block_sum(sum).x / count;
  float2 square{0, 0};
  for (int turn = 0; turn < mine; ++turn) {
    const Eight x = unpack(again(kept, turn, call.kept, call.x + lane.place(call, turn)));
#pragma unroll
    for (int i = 0; i < 8; ++i) square.x += (x.v[i] - mean) * (x.v[i] - mean);
  }
  const float rate = rsqrtf(block_sum(square).x / count + epsilon);
  if (threadIdx.x == 0)
    call.statistics[blockIdx.y * gridDim.x + blockIdx.x] = make_float2(mean, rate);
  if (lane.idle) return;
  const Eight w = load_eight(call.weight + lane.column), b = load_eight(call.bias + lane.column);
  const int all = lane.turns(call.frames);
  for (int turn = 0; turn < all; ++turn) {
    const int64_t place = lane.place(call, turn);
    Eight x{};
    if (turn < mine) {
      x = unpack(again(kept, turn, call.kept, call.x + place));
#pragma unroll
      for (int i = 0; i < 8; ++i) x.v[i] = (x.v[i] - mean) * rate * w.v[i] + b.v[i];
    }
    store_eight(call.out + place, x);
  }
}

// The sums of a block's walkers for each of its channels, walkers in order.
__device__ void write_channels(const Lane& lane, const Eight& own, int channels, float* to) {
  __shared__ float all[threads * 8];
  __syncthreads();
  if (!lane.idle) store_eight(&all[8 * threadIdx.x], own);
  __syncthreads();
  for (int channel = threadIdx.x; channel < channels; channel += threads) {
    float sum = 0;
    for (int w = 0; w < lane.walkers; ++w) sum += all[w * channels + channel];
    to[channel] = sum;
  }
}

__global__ void __launch_bounds__(threads) norm_backward(const FrameNormBackwardCall back) {
  extern __shared__ PackedEight kept[];
  const FrameNormCall& call = back.norm;
  const Lane lane(call);
  PackedEight* kept_gradient = kept + call.kept * threads;
  const int mine = lane.turns(lane.real);
  const float2 stats = call.statistics[blockIdx.y * gridDim.x + blockIdx.x];
  Eight w{}, by_weight{}, by_bias{}, flowing{};
  if (!lane.idle) w = load_eight(call.weight + lane.column);
  for (int turn = 0; turn < mine; ++turn) {
    const int64_t place = lane.place(call, turn);
    const PackedEight x_bits = load_packed(call.x + place),
                      g_bits = load_packed(back.gradient + place);
    if (turn < call.kept) {
      kept[turn * threads + threadIdx.x] = x_bits;
      kept_gradient[turn * threads + threadIdx.x] = g_bits;
    }
    const Eight x = unpack(x_bits), g = unpack(g_bits);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      by_weight.v[i] += g.v[i] * (x.v[i] - stats.x) * stats.y;
      by_bias.v[i] += g.v[i];
    }
  }
  float2 sums{0, 0};
#pragma unroll
  for (int i = 0; i < 8; ++i) sums.x += by_weight.v[i] * w.v[i], sums.y += by_bias.v[i] * w.v[i];
  sums = block_sum(sums);
  const float count = static_cast<float>(lane.real) * static_cast<float>(call.channels);
  sums.x /= count, sums.y /= count;
  const int all = lane.turns(call.frames);
  for (int turn = 0; turn < all; ++turn) {
    const int64_t place = lane.place(call, turn);
    Eight out{};
    if (turn < mine) {
      const Eight x = unpack(again(kept, turn, call.kept, call.x + place));
      const Eight g = unpack(again(kept_gradient, turn, call.kept, back.gradient + place));
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float normed = (x.v[i] - stats.x) * stats.y;
        out.v[i] = stats.y * (g.v[i] * w.v[i] - sums.y - normed * sums.x);
        flowing.v[i] += out.v[i];
      }
    }
    store_eight(back.x_gradient + place, out);
  }
  float* to = back.partial + static_cast<int64_t>(blockIdx.y) * 3 * call.width +
              static_cast<int64_t>(blockIdx.x) * call.channels;
  write_channels(lane, by_weight, call.channels, to);
  write_channels(lane, by_bias, call.channels, to + call.width);
  write_channels(lane, flowing, call.channels, to + 2 * call.width);
}

// Turns of a thread whose values fit the shared memory, `copies` of each.
int turns_kept(const FrameNormCall& call, int copies) {
  const int walkers = threads / (call.channels / 8);
  const int needed = (call.frames + walkers - 1) / walkers;
  const int fitting = most_kept_bytes / (copies * threads * static_cast<int>(sizeof(PackedEight)));
  return std::min(needed, fitting);
}

template <class Kernel, class Call>
void launch(Kernel kernel, const Call& call, const FrameNormCall& norm, int copies,
            cudaStream_t stream) {
  const size_t bytes = sizeof(PackedEight) * static_cast<size_t>(threads * norm.kept * copies);
  C10_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_kept_bytes));
  const dim3 grid(static_cast<unsigned>(norm.width / norm.channels),
                  static_cast<unsigned>(norm.rows));
  kernel<<<grid, threads, bytes, stream>>>(call);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

double bytes_of(const FrameNormCall& call) { return 2.0 * call.rows * call.frames * call.width; }

}  // namespace

void launch_frame_norm(const FrameNormCall& given, cudaStream_t stream) {
  FrameNormCall call = given;
  call.kept = turns_kept(call, 1);
  const WorkNote note("tandem::frame_norm", 0, 2 * bytes_of(call));
  launch(norm_forward, call, call, 1, stream);
}

void launch_frame_norm_backward(const FrameNormBackwardCall& given, cudaStream_t stream) {
  FrameNormBackwardCall call = given;
  call.norm.kept = turns_kept(call.norm, 2);
  const WorkNote note("tandem::frame_norm_backward", 0, 3 * bytes_of(call.norm));
  launch(norm_backward, call, call.norm, 2, stream);
}

}  // namespace tandem
