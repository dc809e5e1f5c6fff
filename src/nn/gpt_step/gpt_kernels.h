// The kernels of GptStep, told in plain pointers: activations and weights in bfloat16, sums,
// statistics and gradients of weights in float32. `width` (D) is a multiple of 8 and at most
// `widest`. All run on `stream`, none allocates.
//
// Sums over places (gradients of biases and norms) are made in two stages: each block writes the
// sums of its rows, then `launch_finish_sums` adds the blocks' in order. No atomics: the same bits
// every time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

struct __nv_bfloat16;

namespace tandem {

using bf16 = __nv_bfloat16;
struct Fp8Rows;  // fp8.h

constexpr int64_t widest = 2048;

// Which row is what. Made on the device from the lengths: nothing of it is known to the host but
// its sizes.
struct Packing {
  int32_t* starts = nullptr;    // [2 B + 2] first place of each sequence; B + 1 pieces of the tail
                                // follow the B sequences
  int32_t* token = nullptr;     // [places] >= 0: text id, or text_tokens + audio id; -1: tail;
                                // -2 - i: latent i of [B * L]
  int32_t* position = nullptr;  // [places] in its segment
  int32_t* slot = nullptr;      // [places] the row of a head's input that it makes; -1: none
  // Slots: text targets [B, T + 1], behind them audio targets [B, N + 4].
  int32_t* place = nullptr;    // [slots] -1: none
  int32_t* target = nullptr;   // [slots] -1: not learned
  int32_t* read = nullptr;     // [slots] the code that is read at its place; -1: none
  int32_t* counts = nullptr;   // [text_tokens + audio_tokens] places of each token
  int32_t* misfits = nullptr;  // [1] sequences that did not fit, see GptStepBatch::places
};

struct PackCall {
  Packing to;
  const int64_t *text = nullptr, *text_lengths = nullptr;   // [B, T], [B]
  const int64_t *codes = nullptr, *code_lengths = nullptr;  // [B, N], [B]
  const int64_t* read_codes = nullptr;                      // [B, N], as inputs
  const int64_t* slice = nullptr;                           // [B, 2]
  int rows = 0, texts = 0, sounds = 0;                      // B, T, N
  int latents = 0, places = 0, longest = 0;
  int text_tokens = 0, audio_tokens = 0;
  int text_positions = 0, audio_positions = 0;
  int start_text = 0, stop_text = 0, start_audio = 0, stop_audio = 0;
  bool reads_stop = false;
};
void launch_pack(const PackCall& call, cudaStream_t stream);

// The mask of dropout is a function of (seed, step, stream, place, column); `stream` counts the
// places in the network: 0 the embeddings, 1 + 2 l and 2 + 2 l the branches of layer l.
struct Dropout {
  const int64_t* step = nullptr;
  uint64_t seed = 0;
  uint32_t threshold = 0;  // of 65536 that are dropped; 0: none
  int stream = 0;
};
// 1 / (1 - p) where kept, 0 where dropped: [places, width] float32.
void launch_write_mask(const Dropout& dropout, float* out, int places, int width,
                       cudaStream_t stream);

struct EmbedCall {
  Packing packing;
  const bf16 *text_table = nullptr, *audio_table = nullptr;
  const bf16 *text_positions = nullptr, *audio_positions = nullptr;
  const float* latents = nullptr;  // [B * L, D]
  int text_tokens = 0, places = 0, width = 0;
  Dropout dropout;
  bf16* out = nullptr;  // [places, D]
};
void launch_embed(const EmbedCall& call, cudaStream_t stream);

struct EmbedBackwardCall {
  Packing packing;
  const bf16* gradient = nullptr;  // [places, D], of what the tables gave (behind the mask)
  float *text_table = nullptr, *audio_table = nullptr;          // added to
  float *text_positions = nullptr, *audio_positions = nullptr;  // added to
  float* latents = nullptr;                                     // [B * L, D], written
  int rows = 0, texts = 0, sounds = 0, latents_a_row = 0;
  bool reads_stop = false;
  int text_tokens = 0, audio_tokens = 0, places = 0, width = 0;
};
void launch_embed_backward(const EmbedBackwardCall& call, cudaStream_t stream);

struct NormWeights {
  const bf16 *weight = nullptr, *bias = nullptr;
};

// sum = x + dropped(branch + bias); normed = norm(sum). Without `branch`, sum is x itself and is
// not written; without `normed` only the sum is. With `fp8` the norm is written there instead, of
// rows no wider than widest_fp8.
struct AddNormCall {
  const bf16* x = nullptr;
  const bf16* branch = nullptr;
  const bf16* bias = nullptr;  // of the branch, [D]
  NormWeights norm;
  bf16 *sum = nullptr, *normed = nullptr;
  float2* stats = nullptr;  // [places] mean and 1 / deviation, written
  int places = 0, width = 0;
  Dropout dropout;
};
void launch_add_norm(const AddNormCall& call, cudaStream_t stream, const Fp8Rows* fp8 = nullptr);

// Blocks that sum over `places` rows, and with them the rows of the partial sums.
constexpr int most_sum_blocks = 264;
constexpr int sum_blocks(int64_t places) {
  return places >= 4096 ? most_sum_blocks : most_sum_blocks / 2;
}

// Backward of normed = norm(x) beside a residual: out = residual + d norm/dx (gradient).
// `masked` = dropped(out), the gradient of the branch that was added to make x; without dropout it
// is not written (it is `out`). `normed` is computed again for the weight gradient of the product
// that read it. Partial sums [sum_blocks, 3, D]: norm weight, norm bias, branch bias. With `fp8`
// `masked` is also written there, of rows no wider than widest_fp8.
struct NormBackwardCall {
  const bf16 *x = nullptr, *gradient = nullptr, *residual = nullptr;
  NormWeights norm;
  const float2* stats = nullptr;
  bf16 *out = nullptr, *masked = nullptr, *normed = nullptr;
  float* partial = nullptr;
  int places = 0, width = 0;
  Dropout dropout;  // of the branch below
};
void launch_norm_backward(const NormBackwardCall& call, cudaStream_t stream,
                          const Fp8Rows* fp8 = nullptr);

// Both last norms: the heads' inputs of all slots. Rows without a place are zeros.
struct LastNormsCall {
  Packing packing;
  const bf16* x = nullptr;
  NormWeights last, final;
  bf16* out = nullptr;  // [slots, D]
  int slots = 0, width = 0;
};
void launch_last_norms(const LastNormsCall& call, cudaStream_t stream);

// Partial sums [sum_blocks, 5, D]: last weight, bias, final weight, bias, branch bias.
struct LastNormsBackwardCall {
  Packing packing;
  const bf16* x = nullptr;
  const bf16* gradient = nullptr;  // [slots, D]
  NormWeights last, final;
  bf16 *out = nullptr, *masked = nullptr;
  float* partial = nullptr;
  int places = 0, width = 0;
  Dropout dropout;
};
void launch_last_norms_backward(const LastNormsBackwardCall& call, cudaStream_t stream);

// GroupNorm over the real frames of rows [rows, frames, width]; padding comes out as 0. A group's
// channels are a multiple of 8, 2048 at most.
struct FrameNormCall {
  const bf16* x = nullptr;
  const int64_t* lengths = nullptr;  // [rows] real frames, 1 at least
  const bf16 *weight = nullptr, *bias = nullptr;
  bf16* out = nullptr;
  float2* statistics = nullptr;  // [rows, groups] mean and 1 / deviation; read by the backward pass
  int rows = 0, frames = 0, width = 0, channels = 0;  // channels of a group
  int kept = 0;                                       // set by the launch
};
void launch_frame_norm(const FrameNormCall& call, cudaStream_t stream);

// Partial sums [rows, 3, width]: norm weight, norm bias, x_gradient.
struct FrameNormBackwardCall {
  FrameNormCall norm;  // without `out`
  const bf16* gradient = nullptr;
  bf16* x_gradient = nullptr;
  float* partial = nullptr;
};
void launch_frame_norm_backward(const FrameNormBackwardCall& call, cudaStream_t stream);

// GPT-2's GELU (tanh). out = gelu(in), `count` a multiple of 8.
void launch_gelu(const bf16* in, bf16* out, int64_t count, cudaStream_t stream);
// The same for sums over a wide matrix: parts of its rows.
constexpr int column_parts = 64;
// gradient *= gelu'(in); activated = gelu(in); partial [column_parts, columns].
void launch_gelu_backward(const bf16* in, bf16* gradient, bf16* activated, float* partial,
                          int places, int columns, cudaStream_t stream);
// partial [column_parts, columns] of a matrix [rows, stride], of which `columns` count.
void launch_column_sums(const bf16* in, float* partial, int rows, int columns, int64_t stride,
                        cudaStream_t stream);

struct SumJob {
  const float* partial = nullptr;  // [parts, stride]
  float* out = nullptr;            // [columns]
  int parts = 0, columns = 0;
  int64_t stride = 0;
  int spread = 0;  // column c goes to out[c / 64 * spread + c % 64]; 0: to out[c]
};
constexpr int most_sum_jobs = 50;
struct SumJobs {
  SumJob job[most_sum_jobs];
  int count = 0;
  bool overwrite = false;  // else added to
};
void launch_finish_sums(const SumJobs& jobs, cudaStream_t stream);

// Cross entropy of rows of logits [rows, stride] bfloat16 and, in place, its gradient times
// factor * scale / whole. loss [rows] (0 where nothing is learned), hit [rows] if wanted.
struct LossCall {
  bf16* logits = nullptr;
  const int32_t* target = nullptr;
  const float *scale = nullptr, *whole = nullptr;  // [1]; no gradient without `scale`
  float factor = 1;
  float *loss = nullptr, *hit = nullptr;
  int rows = 0, tokens = 0;
  int64_t stride = 0;
};
void launch_loss(const LossCall& call, cudaStream_t stream);
// out[k] = sum of in over the slots of k (text below `texts`, audio behind) / whole[k]; NaN where a
// sequence did not fit. Without `whole` not divided.
void launch_sum_slots(const float* in, const float* whole, const int32_t* misfits, int texts,
                      int slots, float* out, cudaStream_t stream);

}  // namespace tandem
