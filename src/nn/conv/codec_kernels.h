// CUDA kernels of a codec's decoder (EnCodec's form) beside its convolutions (conv_kernels.h):
// codes to vectors, an LSTM, and the last layer. Channels last; products of halves, sums and state
// in float32. What comes out for a clip does not depend, to the last bit, on the clips beside it,
// on the tiles, or on the windows it is computed in.
//
// Shapes: B clips, T positions, C channels. Strides are in elements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tandem {

// Sums of one vector of each codebook: out[b, t] = codebooks[0][codes[b, 0, t]] + ...
struct CodecVectors {
  int clips = 1, frames = 0, codebooks = 1, codebook_size = 0, width = 0;
  const void* codes = nullptr;  // [B, K, T] by strides
  bool wide = true;             // int64, otherwise int32
  int64_t clip_stride = 0, book_stride = 0, frame_stride = 1;
  const float* vectors = nullptr;  // [K, codebook_size, width]
  void* half_out = nullptr;        // [B, T, width]
};
void launch_codec_vectors(const CodecVectors& call, cudaStream_t stream);

// Steps of one LSTM layer. Hidden states pass from block to block through memory, without a
// barrier: a reader asks again until the word it wants is no longer `codec_unwritten`.
constexpr int codec_lstm_units = 16;   // of a block; a layer of 1024 has 64 blocks
constexpr int codec_unwritten = 0xFF;  // the byte `hidden` is filled with beforehand
constexpr int codec_lstm_most_clips = 32;
struct CodecLstm {
  int clips = 1;     // at most codec_lstm_most_clips
  int width = 1024;  // 256, 512 or 1024
  int steps = 1;
  bool one_by_one = false;       // a launch a step, on any GPU
  const float* gates = nullptr;  // W_ih x + both biases, by strides, then [unit, gate] (i f g o)
  int64_t gate_clip_stride = 0, gate_step_stride = 0;
  const void* weight = nullptr;  // W_hh, see pack_codec_lstm
  float* cell = nullptr;         // [B, width], carried on
  void* hidden = nullptr;        // [1 + steps, B, width] half; row 0: before the first step
  const float* skip = nullptr;   // [B, steps, width] by strides, or null
  int64_t skip_stride = 0;       // from clip to clip
  void* half_out = nullptr;      // elu(skip + hidden state), with `skip` only
  int64_t out_stride = 0;        // from clip to clip
};
// In one launch of width / 16 blocks that hold the weights in registers, each alone on its
// multiprocessor; a launch a step where the GPU has too few for that.
void launch_codec_lstm(const CodecLstm& call, cudaStream_t stream);
// How many clips the current GPU's shared memory allows in one launch: 8, 16 or 32.
int codec_lstm_clips(int width);

// The last layer: seven taps over `channels` channels to one sample, ends reflected; samples
// [first, first + count) of each clip.
constexpr int codec_wave_taps = 7;
struct CodecWave {
  int clips = 1, channels = 64;   // a multiple of 8
  const void* half_in = nullptr;  // [B, length, channels]
  int length = 0, first = 0, count = 0;
  const float* weight = nullptr;  // [channels, 8]: taps, then a zero
  const float* bias = nullptr;    // [1]
  float* out = nullptr;           // [B, count]
  int64_t out_stride = 0;
};
void launch_codec_wave(const CodecWave& call, cudaStream_t stream);

}  // namespace tandem
