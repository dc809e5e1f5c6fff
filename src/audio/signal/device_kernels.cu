#include "audio/signal/device_kernels.h"

#include <ATen/core/TensorBody.h>
#include <ATen/ops/tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "audio/signal/loudness.h"
#include "audio/signal/noise_draw.h"
#include "audio/signal/ragged.h"
#include "audio/signal/resample.h"

namespace tandem {
namespace {

constexpr int threads = 256;

unsigned blocks_for(int64_t items) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}
// Rows lie along y, which ends at 65535.
dim3 grid_for(int64_t items, int64_t rows) {
  TORCH_CHECK(rows <= 65535, "more than 65535 rows in one batch");
  return {blocks_for(items), static_cast<unsigned>(rows), 1};
}
__device__ int64_t item() { return static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x; }

__global__ void resample_kernel(const float* coefficients, const int32_t* first, int taps,
                                int stride, int phases, const float* in, int64_t width,
                                const int64_t* lengths, float* out, int64_t out_width,
                                const int64_t* out_lengths) {
  const int64_t row = blockIdx.y, o = item();
  if (o >= out_lengths[row]) return;
  const int64_t phase = o % phases, start = o / phases * stride + first[phase];
  const int64_t begin = start < 0 ? -start : 0;
  const int64_t left = lengths[row] - start, end = left < taps ? left : taps;
  const float* from = in + row * width + start;
  const float* weights = coefficients + phase * taps;
  float sum = 0;
  for (int64_t k = begin; k < end; ++k) sum += weights[k] * from[k];
  out[row * out_width + o] = sum;
}

// One block a frame.
__global__ void frames_kernel(const float* in, int64_t width, const int64_t* lengths,
                              const float* window, int n_fft, int64_t hop, float* out) {
  const int64_t frame = blockIdx.x, row = blockIdx.y, length = lengths[row];
  float* to = out + (row * gridDim.x + frame) * n_fft;
  const bool own = length > 0 && frame <= length / hop;
  for (int n = static_cast<int>(threadIdx.x); n < n_fft; n += threads) {
    float value = 0;
    if (own) {
      int64_t place = frame * hop - n_fft / 2 + n;
      if (place < 0 || place >= length) {
        const int64_t period = length > 1 ? 2 * (length - 1) : 1;
        place = (place % period + period) % period;
        if (place >= length) place = period - place;
      }
      value = in[row * width + place] * window[n];
    }
    to[n] = value;
  }
}

// One thread a mel of a frame; neighbours are frames, so that the result is written in one piece.
__global__ void mel_kernel(const int32_t* first, const int32_t* count, const int32_t* start,
                           const float* weights, bool magnitude, float clamp, float add,
                           const float2* spectrum, int64_t bins, int64_t frames,
                           const int64_t* row_frames, const float* divisor, int64_t mels,
                           float* out) {
  const int64_t row = blockIdx.y, at = item();
  const int64_t frame = at % frames, mel = at / frames;
  if (mel >= mels || frame >= row_frames[row]) return;
  const float2* bin = spectrum + (row * frames + frame) * bins + first[mel];
  const float* weight = weights + start[mel];
  float sum = 0;
  for (int i = 0; i < count[mel]; ++i) {
    const float power = bin[i].x * bin[i].x + bin[i].y * bin[i].y;
    sum += weight[i] * (magnitude ? sqrtf(power) : power);
  }
  float value = logf((sum < clamp ? clamp : sum) + add);
  if (divisor) value /= divisor[mel];
  out[(row * mels + mel) * frames + frame] = value;
}

// One thread a hop of 100 ms: the filters start from rest one warm-up earlier.
__global__ void energy_kernel(KWeighting k, const float* in, int64_t width, const int64_t* lengths,
                              int64_t hops, double* energies) {
  const int64_t row = blockIdx.y, hop = item();
  if (hop >= hops) return;
  const int64_t begin = hop * k.hop, length = lengths[row];
  const int64_t end = begin + k.hop < length ? begin + k.hop : length;
  const float* from = in + row * width;
  KFilter filter;
  for (int64_t t = begin > k.warm_up ? begin - k.warm_up : 0; t < begin && t < end; ++t)
    filter(k, from[t]);
  double energy = 0;
  for (int64_t t = begin; t < end; ++t) {
    const double y = filter(k, from[t]);
    energy += y * y;
  }
  energies[row * hops + hop] = energy;
}

__global__ void gate_kernel(const double* energies, int64_t hops, const int64_t* lengths,
                            int64_t hop, int64_t rows, double* loudness) {
  const int64_t row = item();
  if (row < rows) loudness[row] = gated_loudness(energies + row * hops, lengths[row], hop);
}

__global__ void noise_kernel(const int64_t* keys, const int64_t* lengths, int64_t width,
                             float* out) {
  const int64_t row = blockIdx.y, t = item();
  if (t < lengths[row])
    out[row * width + t] = noise_at(static_cast<uint64_t>(keys[row]), static_cast<uint64_t>(t));
}

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(); }

}  // namespace

void resample_on_device(const ResampleTable& table, const at::Tensor& in, const at::Tensor& lengths,
                        const at::Tensor& out, const at::Tensor& out_lengths) {
  if (out.numel() == 0) return;
  const at::Tensor coefficients = at::tensor(table.coefficients).to(in.device(), true);
  const at::Tensor first = at::tensor(table.first).to(in.device(), true);
  resample_kernel<<<grid_for(out.size(1), out.size(0)), threads, 0, stream()>>>(
      coefficients.const_data_ptr<float>(), first.const_data_ptr<int32_t>(), table.taps,
      table.stride, table.phases, in.const_data_ptr<float>(), in.size(1),
      lengths.const_data_ptr<int64_t>(), out.mutable_data_ptr<float>(), out.size(1),
      out_lengths.const_data_ptr<int64_t>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void frames_on_device(const at::Tensor& in, const at::Tensor& lengths, const at::Tensor& window,
                      int64_t hop, const at::Tensor& out) {
  if (out.numel() == 0) return;
  TORCH_CHECK(out.size(0) <= 65535, "more than 65535 rows in one batch");
  const dim3 grid(static_cast<unsigned>(out.size(1)), static_cast<unsigned>(out.size(0)));
  frames_kernel<<<grid, threads, 0, stream()>>>(
      in.const_data_ptr<float>(), in.size(1), lengths.const_data_ptr<int64_t>(),
      window.const_data_ptr<float>(), static_cast<int>(out.size(2)), hop,
      out.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void mel_on_device(const DeviceMel& mel, const at::Tensor& spectrum, const at::Tensor& frames,
                   const at::Tensor& divisor, const at::Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t mels = out.size(1), width = out.size(2);
  mel_kernel<<<grid_for(mels * width, out.size(0)), threads, 0, stream()>>>(
      mel.first.const_data_ptr<int32_t>(), mel.count.const_data_ptr<int32_t>(),
      mel.start.const_data_ptr<int32_t>(), mel.weights.const_data_ptr<float>(), mel.magnitude,
      mel.clamp, mel.add, reinterpret_cast<const float2*>(spectrum.const_data_ptr<float>()),
      spectrum.size(2), width, frames.const_data_ptr<int64_t>(),
      divisor.defined() ? divisor.const_data_ptr<float>() : nullptr, mels,
      out.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void loudness_on_device(const at::Tensor& in, const at::Tensor& lengths, int sample_rate,
                        const at::Tensor& energies, const at::Tensor& loudness) {
  if (loudness.numel() == 0) return;
  const KWeighting k = k_weighting(sample_rate);
  const int64_t rows = in.size(0), hops = energies.size(1);
  energy_kernel<<<grid_for(hops, rows), threads, 0, stream()>>>(
      k, in.const_data_ptr<float>(), in.size(1), lengths.const_data_ptr<int64_t>(), hops,
      energies.mutable_data_ptr<double>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  gate_kernel<<<blocks_for(rows), threads, 0, stream()>>>(
      energies.const_data_ptr<double>(), hops, lengths.const_data_ptr<int64_t>(), k.hop, rows,
      loudness.mutable_data_ptr<double>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void noise_on_device(const at::Tensor& keys, const at::Tensor& lengths, const at::Tensor& out) {
  if (out.numel() == 0) return;
  noise_kernel<<<grid_for(out.size(1), out.size(0)), threads, 0, stream()>>>(
      keys.const_data_ptr<int64_t>(), lengths.const_data_ptr<int64_t>(), out.size(1),
      out.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
