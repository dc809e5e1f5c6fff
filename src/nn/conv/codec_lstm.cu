// An LSTM layer whose weights stay in the registers of as many multiprocessors as they need. A
// block owns 16 units, 64 rows of W_hh; its 16 warps cut them into 2 halves of the rows by 8 slices
// of the inner dimension, and the 8 partial sums of a gate are added in order, whatever the batch.
#include <algorithm>

#include "nn/conv/codec_kernels.h"
#include "nn/conv/conv_math.cuh"
#include "nn/rows/launch.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int slices = 8, row_groups = 2, threads = 32 * slices * row_groups;
constexpr int units = codec_lstm_units, gate_rows = 4 * units;
constexpr int sum_pitch = gate_rows + 4;  // of a clip's partial sums: no two lanes on one bank
constexpr uint32_t unwritten = 0xFFFFFFFFu;

// Values that other blocks write while this kernel runs: never from the first-level cache.
__device__ uint4 load_shared_word(const uint4* from) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}
__device__ void store_shared_word(uint32_t* to, uint32_t value) {
  // No two halves of a hidden state have these bits (a NaN is rounded to 0x7FFF), but a reader
  // would wait for ever if they did.
  if (value == unwritten) value = 0x7FFF7FFFu;
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ bool written(const uint4& v) {
  return v.x != unwritten && v.y != unwritten && v.z != unwritten && v.w != unwritten;
}

__device__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

template <int width, int tiles>
constexpr size_t shared_bytes() {
  return sizeof(__half) * tiles * 8 * (width + 8) + sizeof(float) * slices * tiles * 8 * sum_pitch;
}

// The hidden states of the step before, [clips, width], to shared memory as soon as they are there.
template <int width, int tiles>
__device__ void await_hidden(const __half* hidden, int clips, __half* near) {
  constexpr int pieces = tiles * 8 * width / 8, each = (pieces + threads - 1) / threads;
  const auto* from = reinterpret_cast<const uint4*>(hidden);
  const int real = clips * width / 8;
  uint4 values[each];
#pragma unroll
  for (int i = 0; i < each; ++i) values[i] = {unwritten, unwritten, unwritten, unwritten};
  // All that is missing is asked for at once: one way to memory and back, not one each.
  for (bool missing = true; missing;) {
    missing = false;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int piece = i * threads + threadIdx.x;
      if (piece < real && !written(values[i])) values[i] = load_shared_word(from + piece);
    }
#pragma unroll
    for (int i = 0; i < each; ++i)
      missing = missing || (i * threads + threadIdx.x < real && !written(values[i]));
  }
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const int piece = i * threads + threadIdx.x;
    if (piece < real)
      *reinterpret_cast<uint4*>(near + piece / (width / 8) * (width + 8) +
                                piece % (width / 8) * 8) = values[i];
  }
}

// `tiles` times 8 clips.
template <int width, int tiles>
__global__ void __launch_bounds__(threads, 1) codec_lstm(const CodecLstm call) {
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr int pitch = width + 8, slice = width / slices, depth = slice / 16;
  auto* near = reinterpret_cast<__half*>(shared);  // [clips, pitch]
  auto* partial = reinterpret_cast<float*>(shared + sizeof(__half) * tiles * 8 * pitch);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int my_slice = warp % slices, group = warp / slices;

  uint4 weight[2][depth];  // rows 32 * group + 16 * m
  const auto* packed =
      static_cast<const uint4*>(call.weight) +
      (static_cast<int64_t>(blockIdx.x) * slices * row_groups + warp) * 2 * depth * 32 + lane;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int k = 0; k < depth; ++k) weight[m][k] = __ldg(packed + (m * depth + k) * 32);
  }
  // A thread's own cell. Clips that are not there are computed from zeros and kept nowhere.
  const int clip = threadIdx.x / units, unit = threadIdx.x % units;
  const int column = blockIdx.x * units + unit;
  const bool has_cell = threadIdx.x < tiles * 8 * units, real = clip < call.clips;
  float cell = real ? call.cell[clip * width + column] : 0.f;
  for (int i = threadIdx.x; i < tiles * 8 * pitch / 8; i += threads)
    reinterpret_cast<uint4*>(near)[i] = {0, 0, 0, 0};
  __syncthreads();

  auto* hidden = static_cast<__half*>(call.hidden);
  const int64_t row = static_cast<int64_t>(call.clips) * width;
  for (int step = 0; step < call.steps; ++step) {
    float4 gates = {0, 0, 0, 0};
    float base = 0;
    if (real) {
      gates = __ldg(reinterpret_cast<const float4*>(call.gates + clip * call.gate_clip_stride +
                                                    step * call.gate_step_stride + 4 * column));
      if (call.skip)
        base = __ldg(call.skip + clip * call.skip_stride + static_cast<int64_t>(step) * width +
                     column);
    }
    await_hidden<width, tiles>(hidden + step * row, call.clips, near);
    __syncthreads();
    constexpr int at_once = tiles < 2 ? tiles : 2;
#pragma unroll
    for (int first = 0; first < tiles; first += at_once) {
      float sums[at_once][2][4] = {};
#pragma unroll
      for (int k = 0; k < depth; k += 2) {
#pragma unroll
        for (int n = 0; n < at_once; ++n) {
          const uint4 b = load_matrix(near + ((first + n) * 8 + lane % 8) * pitch +
                                      my_slice * slice + k * 16 + lane / 8 * 8);
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            multiply_tile<__half>(sums[n][m], weight[m][k], b.x, b.y);
            multiply_tile<__half>(sums[n][m], weight[m][k + 1], b.z, b.w);
          }
        }
      }
#pragma unroll
      for (int n = 0; n < at_once; ++n) {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          float* to = partial +
                      (my_slice * tiles * 8 + (first + n) * 8 + lane % 4 * 2) * sum_pitch +
                      group * 32 + m * 16 + lane / 4;
          to[0] = sums[n][m][0];
          to[sum_pitch] = sums[n][m][1];
          to[8] = sums[n][m][2];
          to[sum_pitch + 8] = sums[n][m][3];
        }
      }
    }
    __syncthreads();
    if (!has_cell) continue;  // whole warps
#pragma unroll
    for (int s = 0; s < slices; ++s) {
      const float4 part =
          *reinterpret_cast<const float4*>(partial + (s * tiles * 8 + clip) * sum_pitch + 4 * unit);
      gates.x += part.x, gates.y += part.y, gates.z += part.z, gates.w += part.w;
    }
    cell = sigmoid(gates.y) * cell + sigmoid(gates.x) * tanhf(gates.z);
    const float state = sigmoid(gates.w) * tanhf(cell);
    // Even units write for their neighbours.
    const float next = __shfl_down_sync(~0u, state, 1);
    const bool writes = real && unit % 2 == 0;
    if (writes)
      store_shared_word(
          reinterpret_cast<uint32_t*>(hidden + (step + 1) * row + clip * width + column),
          half_pair<__half>(state, next));
    if (call.skip) {
      const float y = elu(base + state), next_y = __shfl_down_sync(~0u, y, 1);
      if (writes)
        *reinterpret_cast<uint32_t*>(static_cast<__half*>(call.half_out) + clip * call.out_stride +
                                     static_cast<int64_t>(step) * width + column) =
            half_pair<__half>(y, next_y);
    }
  }
  if (real) call.cell[clip * width + column] = cell;
}

template <int width, int tiles>
void launch_sized(const CodecLstm& call, cudaStream_t stream) {
  constexpr size_t shared = shared_bytes<width, tiles>();
  constexpr int blocks = width / units;
  const auto kernel = codec_lstm<width, tiles>;
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared)));
  int resident = 0;
  C10_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared));
  const bool together = !call.one_by_one && device_attribute(cudaDevAttrCooperativeLaunch) != 0 &&
                        resident * device_attribute(cudaDevAttrMultiProcessorCount) >= blocks;
  // Blocks that wait for each other must all be there: the launch asks the GPU to promise it.
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = together ? 1 : 0;
  if (together) {
    C10_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, call));
    return;
  }
  CodecLstm one = call;
  one.steps = 1;
  for (int step = 0; step < call.steps; ++step) {
    C10_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, one));
    one.gates += call.gate_step_stride;
    one.hidden = static_cast<__half*>(one.hidden) + static_cast<int64_t>(call.clips) * call.width;
    if (call.skip) {
      one.skip += call.width;
      one.half_out = static_cast<__half*>(one.half_out) + call.width;
    }
  }
}

template <int width>
void launch_wide(const CodecLstm& call, cudaStream_t stream) {
  if (call.clips <= 8) {
    launch_sized<width, 1>(call, stream);
  } else if (call.clips <= 16) {
    launch_sized<width, 2>(call, stream);
  } else {
    launch_sized<width, 4>(call, stream);
  }
}

}  // namespace

int codec_lstm_clips(int width) {
  const auto room = static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  const size_t a_clip = sizeof(__half) * (width + 8) + sizeof(float) * slices * sum_pitch;
  return room >= 32 * a_clip ? 32 : room >= 16 * a_clip ? 16 : 8;
}

void launch_codec_lstm(const CodecLstm& call, cudaStream_t stream) {
  const double weights = 4.0 * call.width * call.width;
  const double values = static_cast<double>(call.clips) * call.steps * call.width;
  // Gates are read, hidden states written and read; with a skip that is read and the sum written.
  const WorkNote note("tandem::codec_lstm", 2 * weights * call.clips * call.steps,
                      2 * weights + values * (16 + 4 + (call.skip ? 6 : 0)));
  call.width == 1024  ? launch_wide<1024>(call, stream)
  : call.width == 512 ? launch_wide<512>(call, stream)
                      : launch_wide<256>(call, stream);
}

}  // namespace tandem
