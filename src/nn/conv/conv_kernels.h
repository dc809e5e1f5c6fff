// CUDA kernels for one-dimensional convolutions over clips of different length: channels last, half
// precision in the products, float32 in the sums and between the layers. What comes out for a
// position does not depend, to the last bit, on the batch, the tile or the clip's place in it.
//
// Shapes: B clips, T positions (rows of one clip's buffer), C channels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tandem {

enum class ConvOutput {
  store,       // out = y
  store_half,  // half_out = leaky(y, out_slope)
  add,         // out += y
  mean,        // out = y_in + y, times `scale`; added to what is there when `accumulate`
};

// y[t, n] = bias[n] + sum over taps and channels of weight * leaky(in[t + first + tap * dilation]).
// Positions outside [0, length) are zero. With rate > 1 (a transposed convolution as a convolution
// whose columns are [phase, channel]) the columns of t are the positions t * rate + phase - shift.
struct ConvCall {
  int batch = 1;
  int channels = 32;  // of the input, a multiple of 32 (zeros beyond the real ones)
  int columns = 32;   // of the output, a multiple of 32
  int taps = 1, first = 0, dilation = 1;
  const float* in = nullptr;  // [B, in_rows, channels], or
  const void* half_in = nullptr;
  int64_t in_rows = 0;               // of a clip's buffer
  const int32_t* lengths = nullptr;  // [B] real positions of each clip before the first layer
  int length_scale = 1;              // times this at this layer's input
  int most_positions = 0;            // of the longest clip at this layer's input
  float slope = 1;                   // of the input's leaky ReLU
  const void* weight = nullptr;      // packed, see pack_conv
  const float* bias = nullptr;       // [out channels], never null
  const float* clip_bias = nullptr;  // [B, out channels] or null
  int rate = 1, shift = 0;
  ConvOutput output = ConvOutput::store;
  float* out = nullptr;  // [B, out_rows, columns / rate]
  void* half_out = nullptr;
  float out_slope = 1;
  const float* residual = nullptr;  // mean: what y is added to
  float scale = 1;
  bool accumulate = false;
  int64_t out_rows = 0;
};
void launch_conv(const ConvCall& call, cudaStream_t stream);

// Where weight element (tap, channel, column) is kept.
constexpr int64_t packed_conv_index(int64_t tap, int64_t channel, int64_t column, int64_t channels,
                                    int64_t columns) {
  const int64_t tile = (tap * (channels / 32) + channel / 32) * (columns / 8) + column / 8;
  const int64_t lane = (column % 8) * 4 + (channel % 8) / 2;
  return (tile * 32 + lane) * 8 + ((channel % 32) / 8) * 2 + channel % 2;
}

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
