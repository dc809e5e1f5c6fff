// CUDA kernels for one-dimensional convolutions over clips: channels last, half precision in the
// products, float32 in the sums and, where wanted, between the layers. What comes out for a
// position does not depend, to the last bit, on the batch, the tile or the clip's place in it.
//
// Shapes: B clips, T positions, C channels. Strides are in elements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tandem {

enum class Activation { none, leaky_relu, elu };

// y[t, n] = bias[n] + sum over taps and channels of weight * in[t + first + tap * dilation], for
// `rows` rows from `first_row`. Outside [0, length) the input is reflected or zero. With rate > 1
// (a transposed convolution as one whose columns are [phase, channel]) the columns of row t are the
// positions t * rate + phase - shift of the result, those of them in [0, length * rate); otherwise
// row t is position t - first_row.
struct ConvCall {
  int clips = 1;
  int channels = 32;  // of the input, a multiple of 32
  int columns = 32;   // of the output, [phase, channel]; of each phase a multiple of 32
  int taps = 1, first = 0, dilation = 1;
  int length = 0;                    // of each clip's input, or
  const int32_t* lengths = nullptr;  // [B], there before the kernel in front of this starts, times
  int length_scale = 1;
  bool reflect = false;
  int first_row = 0, rows = 0;  // rows: of the longest clip, one more than its length if rate > 1
  const float* in = nullptr;    // [B, T, channels], or
  const void* half_in = nullptr;
  int64_t in_stride = 0;             // from clip to clip
  const void* weight = nullptr;      // see conv_pack.h
  bool hopper = false;               // the weight is packed for warp-group products
  const float* bias = nullptr;       // [columns / rate]
  const float* clip_bias = nullptr;  // [B, columns / rate] or null
  int rate = 1, shift = 0;
  Activation activation = Activation::none;  // of `in` when read, of `half_out` when written
  float slope = 1;                           // of a leaky ReLU
  const float* residual = nullptr;           // added to y; laid out as the result
  float scale = 1;                           // times y
  bool accumulate = false;                   // added to what is in `out`
  float* out = nullptr;                      // [B, T, columns / rate], or
  void* half_out = nullptr;
  int64_t out_stride = 0;  // from clip to clip
};
void launch_conv(const ConvCall& call, cudaStream_t stream);

// Two convolutions, the second of which reads the first one's `half_out`. Where both are one kernel
// that stays inside it, and the result must not be what the first reads. The same bits either way.
bool conv_pair_is_one(const ConvCall& first, const ConvCall& second);
void launch_conv_pair(const ConvCall& first, const ConvCall& second, cudaStream_t stream);

// Whether the current device has warp-group products (compute capability 9.0).
bool hopper_conv_runs();
void launch_hopper_conv(const ConvCall& call, cudaStream_t stream);
void launch_hopper_conv_pair(const ConvCall& first, const ConvCall& second, cudaStream_t stream);

}  // namespace tandem
