// CUDA kernels of XTTS's vocoder beside its convolutions (conv_kernels.h).
//
// Shapes: B clips.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tandem {

// The last layer: one channel out of `channels` through `taps` taps, then tanh.
struct WaveCall {
  int batch = 1, channels = 32, taps = 7;
  const float* in = nullptr;  // [B, rows, channels]
  int64_t rows = 0;
  const int32_t* lengths = nullptr;
  int length_scale = 1;
  int most_positions = 0;
  float slope = 1;
  const float* weight = nullptr;  // [taps, channels]
  float bias = 0;
  float* out = nullptr;  // [B, rows]
};
void launch_wave(const WaveCall& call, cudaStream_t stream);

// Frames of clips between their latents, interpolated twice: to `frames_a_code` as many, then by
// `ratio`. Frame f of clip b is the clip's frame first[b] + f.
struct FrameCall {
  int batch = 1, width = 0, channels = 0;  // channels: the padded width
  int most_frames = 0;
  const float* const* latents = nullptr;  // [B] pointers to [codes, width]
  const int32_t* codes = nullptr;         // [B]
  const int32_t* first = nullptr;         // [B]
  const int32_t* counts = nullptr;        // [B]
  int frames_a_code = 4;
  const float* inverse_ratio = nullptr;  // [B]
  void* half_out = nullptr;              // [B, rows, channels]
  int64_t rows = 0;
};
void launch_frames(const FrameCall& call, cudaStream_t stream);

// out[b] = in[b] W + bias, one output a thread, summed in order: what the layers are told of a
// clip.
struct ToldCall {
  int batch = 1, inputs = 0, outputs = 0;
  const float* in = nullptr;      // [B, inputs]
  const float* weight = nullptr;  // [inputs, outputs]
  const float* bias = nullptr;
  float* out = nullptr;
};
void launch_told(const ToldCall& call, cudaStream_t stream);

}  // namespace tandem
