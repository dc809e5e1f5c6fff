// The CUDA side of the signal work, each on the current stream; device_kernels.cu. Rows are ragged:
// `lengths` are int64 [B] on the device, outputs come zeroed and stay zero beyond each row's own
// end.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

struct ResampleTable;

// [B, T] -> out [B, T'].
void resample_on_device(const ResampleTable& table, const at::Tensor& in, const at::Tensor& lengths,
                        const at::Tensor& out, const at::Tensor& out_lengths);

// Frames of the rows, reflected at their ends and windowed: [B, T] -> out [B, F, n_fft].
void frames_on_device(const at::Tensor& in, const at::Tensor& lengths, const at::Tensor& window,
                      int64_t hop, const at::Tensor& out);

// The filters of a mel front end on the device: bins first[m] .. first[m] + count[m] of filter m
// with weights[start[m] ...].
struct DeviceMel {
  at::Tensor first, count, start, weights;
  bool magnitude = false;
  float clamp = 0, add = 0;
};
// Log mels of a spectrum [B, F, bins, 2] -> out [B, mels, F]. `divisor` is [mels] or undefined.
void mel_on_device(const DeviceMel& mel, const at::Tensor& spectrum, const at::Tensor& frames,
                   const at::Tensor& divisor, const at::Tensor& out);

// Mean squares after K-weighting of each hop: [B, T] -> float64 [B, hops]; then the gated loudness
// of each row, float64 [B].
void loudness_on_device(const at::Tensor& in, const at::Tensor& lengths, int sample_rate,
                        const at::Tensor& energies, const at::Tensor& loudness);

// Noise that depends on `keys` (int64 [B]) and the place alone, zero beyond the rows: out [B, T].
void noise_on_device(const at::Tensor& keys, const at::Tensor& lengths, const at::Tensor& out);

}  // namespace tandem
