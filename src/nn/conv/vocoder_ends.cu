// The first and the last layers of XTTS's vocoder: frames between latents, what the layers are told
// of a voice, and samples.
#include <cuda_fp16.h>

#include "nn/conv/vocoder_kernels.h"
#include "nn/rows/launch.cuh"
#include "nn/rows/row_math.cuh"

namespace tandem {
namespace {

constexpr int threads = 256;

__device__ float leaky(float x, float slope) { return x >= 0 ? x : x * slope; }

__global__ void __launch_bounds__(threads) wave(const WaveCall call) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* stretch = reinterpret_cast<float*>(shared);
  release_successor();
  await_predecessor();
  const int clip = blockIdx.y, length = call.lengths[clip] * call.length_scale;
  const int first = blockIdx.x * threads, reach = call.taps / 2, pitch = call.channels + 1;
  if (first >= length) return;
  const int rows = threads + call.taps - 1;
  for (int i = threadIdx.x; i < rows * call.channels; i += threads) {
    const int t = first - reach + i / call.channels, channel = i % call.channels;
    float value = 0;
    if (t >= 0 && t < length)
      value = leaky(call.in[(static_cast<int64_t>(clip) * call.rows + t) * call.channels + channel],
                    call.slope);
    stretch[i / call.channels * pitch + channel] = value;
  }
  __syncthreads();
  const int t = first + threadIdx.x;
  if (t >= length) return;
  float sum = call.bias;
  for (int tap = 0; tap < call.taps; ++tap)
    for (int channel = 0; channel < call.channels; ++channel)
      sum += call.weight[tap * call.channels + channel] *
             stretch[(threadIdx.x + tap) * pitch + channel];
  call.out[static_cast<int64_t>(clip) * call.rows + t] = tanhf(sum);
}

// One place of a linear interpolation without aligned corners: which two values, and the share of
// the second.
struct Between {
  int low, high;
  float share;
};
__device__ Between between(int index, float inverse_scale, int size) {
  const float source = fmaxf((static_cast<float>(index) + 0.5f) * inverse_scale - 0.5f, 0.f);
  const int low = min(static_cast<int>(source), size - 1);
  return {low, min(low + 1, size - 1), source - static_cast<float>(low)};
}

__global__ void frames(const FrameCall call) {
  release_successor();
  await_predecessor();
  const int clip = blockIdx.y, frame = blockIdx.x;
  if (frame >= call.counts[clip]) return;
  const int codes = call.codes[clip];
  const float* latents = call.latents[clip];
  const int middle = codes * call.frames_a_code;
  const Between outer = between(call.first[clip] + frame, call.inverse_ratio[clip], middle);
  const float inverse = 1.f / static_cast<float>(call.frames_a_code);
  const Between low = between(outer.low, inverse, codes),
                high = between(outer.high, inverse, codes);
  auto* out = static_cast<__half*>(call.half_out) +
              (static_cast<int64_t>(clip) * call.rows + frame) * call.channels;
  const auto mixed = [&](const Between& place, int i) {
    const float a = latents[static_cast<int64_t>(place.low) * call.width + i];
    const float b = latents[static_cast<int64_t>(place.high) * call.width + i];
    return (1.f - place.share) * a + place.share * b;
  };
  for (int i = threadIdx.x; i < call.channels; i += blockDim.x) {
    float value = 0;
    if (i < call.width) value = (1.f - outer.share) * mixed(low, i) + outer.share * mixed(high, i);
    out[i] = to_half<__half>(value);
  }
}

__global__ void told(const ToldCall call) {
  release_successor();
  await_predecessor();
  const int output = blockIdx.x * blockDim.x + threadIdx.x, clip = blockIdx.y;
  if (output >= call.outputs) return;
  float sum = call.bias[output];
  for (int i = 0; i < call.inputs; ++i)
    sum += call.in[clip * call.inputs + i] *
           call.weight[static_cast<int64_t>(i) * call.outputs + output];
  call.out[static_cast<int64_t>(clip) * call.outputs + output] = sum;
}

}  // namespace

void launch_told(const ToldCall& call, cudaStream_t stream) {
  launch_in_turn(told, dim3((call.outputs + 63) / 64, call.batch), dim3(64), 0, stream, call);
}

void launch_wave(const WaveCall& call, cudaStream_t stream) {
  const dim3 grid((call.most_positions + threads - 1) / threads, call.batch);
  const size_t shared = sizeof(float) * (threads + call.taps - 1) * (call.channels + 1);
  if (shared > 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(wave, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  }
  launch_in_turn(wave, grid, dim3(threads), shared, stream, call);
}

void launch_frames(const FrameCall& call, cudaStream_t stream) {
  launch_in_turn(frames, dim3(call.most_frames, call.batch), dim3(threads), 0, stream, call);
}

}  // namespace tandem
