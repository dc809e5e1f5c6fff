// The first and the last layer of a codec's decoder: vectors of codes, and samples.
#include "nn/conv/codec_kernels.h"
#include "nn/conv/conv_math.cuh"
#include "nn/rows/launch.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

__global__ void codec_vectors(const CodecVectors call) {
  release_successor();
  await_predecessor();
  const int frame = blockIdx.x, clip = blockIdx.y;
  auto* out = static_cast<__half*>(call.half_out) +
              (static_cast<int64_t>(clip) * call.frames + frame) * call.width;
  for (int i = threadIdx.x; i < call.width; i += blockDim.x) {
    float sum = 0;
    for (int k = 0; k < call.codebooks; ++k) {
      const int64_t at = clip * call.clip_stride + k * call.book_stride + frame * call.frame_stride;
      const int64_t given = call.wide ? static_cast<const int64_t*>(call.codes)[at]
                                      : static_cast<const int32_t*>(call.codes)[at];
      // A code that no codebook has must not become a wild address.
      const int64_t code = given < 0 ? 0 : min(given, int64_t{call.codebook_size - 1});
      sum += call.vectors[(static_cast<int64_t>(k) * call.codebook_size + code) * call.width + i];
    }
    out[i] = to_half<__half>(sum);
  }
}

constexpr int wave_threads = 256, reach = codec_wave_taps / 2;
constexpr int wave_samples = wave_threads - 2 * reach;  // of a block

// Each thread makes the products of one position with all taps, reading the position once; then the
// products are added along.
__global__ void __launch_bounds__(wave_threads) codec_wave(const CodecWave call) {
  extern __shared__ __align__(16) float weight[];  // [channels, 8]
  __shared__ float products[codec_wave_taps][wave_threads];
  for (int i = threadIdx.x; i < call.channels * 8; i += wave_threads) weight[i] = call.weight[i];
  const float bias = call.bias[0];
  release_successor();
  await_predecessor();
  __syncthreads();
  const int clip = blockIdx.y, block_first = call.first + blockIdx.x * wave_samples;
  const int mine = block_first - reach + static_cast<int>(threadIdx.x);
  float sums[codec_wave_taps] = {};
  if (mine >= 0 && mine < call.length) {
    const auto* from = reinterpret_cast<const uint4*>(
        static_cast<const __half*>(call.half_in) +
        (static_cast<int64_t>(clip) * call.length + mine) * call.channels);
    for (int piece = 0; piece < call.channels / 8; ++piece) {
      const uint4 packed = __ldg(from + piece);
      const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float2 pair = float_pair<__half>(words[j / 2]);
        const float value = j % 2 == 0 ? pair.x : pair.y;
        const auto* taps = reinterpret_cast<const float4*>(weight + (piece * 8 + j) * 8);
        const float4 a = taps[0], b = taps[1];
        const float w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
        for (int tap = 0; tap < codec_wave_taps; ++tap) sums[tap] += w[tap] * value;
      }
    }
  }
#pragma unroll
  for (int tap = 0; tap < codec_wave_taps; ++tap) products[tap][threadIdx.x] = sums[tap];
  __syncthreads();
  const int t = block_first + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= wave_samples || t >= call.first + call.count) return;
  float sum = bias;
#pragma unroll
  for (int tap = 0; tap < codec_wave_taps; ++tap) {
    const int source = reflected(t + tap - reach, call.length, reach);
    // A reflected position lies no further off than the block's own edge.
    if (source >= 0) sum += products[tap][source - block_first + reach];
  }
  call.out[clip * call.out_stride + (t - call.first)] = sum;
}

}  // namespace

void launch_codec_vectors(const CodecVectors& call, cudaStream_t stream) {
  const double codes = static_cast<double>(call.clips) * call.frames * call.codebooks;
  const WorkNote note("tandem::codec_vectors", 0,
                      codes * ((call.wide ? 8 : 4) + 4.0 * call.width) +
                          2.0 * call.clips * call.frames * call.width);
  launch_in_turn(codec_vectors, dim3(call.frames, call.clips), dim3(128), 0, stream, call);
}

void launch_codec_wave(const CodecWave& call, cudaStream_t stream) {
  const double samples = static_cast<double>(call.clips) * call.count;
  const WorkNote note("tandem::codec_wave", 2 * samples * call.channels * codec_wave_taps,
                      samples * (2.0 * call.channels + 4));
  const dim3 grid((call.count + wave_samples - 1) / wave_samples, call.clips);
  launch_in_turn(codec_wave, grid, dim3(wave_threads), sizeof(float) * call.channels * 8, stream,
                 call);
}

}  // namespace tandem
