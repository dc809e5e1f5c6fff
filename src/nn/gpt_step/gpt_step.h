// One training pass of a GPT over packed sequences on a GPU, forward and backward by hand: products
// in bfloat16 through cuBLASLt, our own kernels for norms, residuals, dropout, GELU, embeddings and
// losses, flash attention over the packed sequences. Buffers are taken once for the largest batch;
// nothing is allocated in a pass (but by LibTorch's attention on GPUs other than Hopper), so that
// it can be captured, and passes of any size share the same buffers.
//
//   [ latents (L) | START text | start codes stop stop stop ]   inputs of one sequence
//   [             | text STOP  | codes stop stop stop stop  ]   what it learns
//
// The STOP that XTTS reads behind the text when it speaks is hidden from attention in its training;
// with `reads_stop` it is a place as well. Sequences stand behind each other without padding.
// `places` rows are computed; what is behind the last sequence is sequences without targets.
//
// The same inputs give the same bits: no sum is left to the order in which blocks finish.
#pragma once

#include <ATen/core/TensorBody.h>

#include <memory>
#include <vector>

namespace tandem {

// A weight in bfloat16 and the float32 tensor its gradient is added to; for the four matrices of a
// layer it may be bfloat16. Both without gaps, their first element at a multiple of 16 bytes.
struct TrainedWeight {
  at::Tensor weight, gradient;
};

struct GptStepBlock {
  TrainedWeight norm1_weight, norm1_bias, qkv_weight, qkv_bias, project_weight, project_bias,
      norm2_weight, norm2_bias, expand_weight, expand_bias, contract_weight, contract_bias;
};  // products stored [in, out]

struct GptStepWeights {
  TrainedWeight text_embedding, audio_embedding, text_positions, audio_positions;
  std::vector<GptStepBlock> blocks;
  TrainedWeight last_norm_weight, last_norm_bias, final_norm_weight, final_norm_bias;
  TrainedWeight text_head_weight, text_head_bias, audio_head_weight, audio_head_bias;  // [out, in]
  int64_t heads = 16;
};

struct GptStepOptions {
  int64_t most_places = 0;  // of a pass, all sequences together
  int64_t most_rows = 0;    // sequences of a pass
  int64_t longest = 0;      // places of one sequence at most
  int64_t latents = 32;
  bool recompute = false;  // keep only the residual stream of each layer, compute the rest again
  double dropout = 0;      // on embeddings and on both branches of every layer
  double text_loss_weight = 0.01;
  // Of a third loss: the code that a place of audio has read, told from its head's input by the
  // audio embedding. 0: none.
  double recall_weight = 0;
  // Products of the forward pass and of gradients that flow back in 8-bit floats: see fp8.h. Only
  // where `gpt_step_takes_fp8(width)`.
  bool fp8 = false;
  int64_t start_text = 0, stop_text = 0, start_audio = 0, stop_audio = 0;
  bool reads_stop = false;  // see above
  // Measures the products' algorithms at the start (about a second). Off: the same bits in every
  // run of the program, for runs that must be repeatable.
  bool tune = true;
};

// Places that a row takes; none when both lengths are 0.
constexpr int64_t gpt_step_places(int64_t latents, int64_t text_length, int64_t code_length,
                                  bool reads_stop = false) {
  return text_length == 0 && code_length == 0
             ? 0
             : latents + text_length + 1 + (reads_stop ? 1 : 0) + code_length + 4;
}

// Whether the current device and this width can have GptStepOptions::fp8.
bool gpt_step_takes_fp8(int64_t width);

// On the device. Rows with both lengths 0 take no places. B (T + 1 + N + 4) is at most most_rows *
// longest, for the heads' inputs.
struct GptStepBatch {
  at::Tensor latents;              // [B, L, D] float32
  at::Tensor text, text_lengths;   // [B, T] int64, [B]
  at::Tensor codes, code_lengths;  // [B, N] int64, [B]
  // [B, N] int64: what is read instead of `codes`, which stay the targets; undefined: they are
  // read. Only the forward pass looks at it (piece 0).
  at::Tensor read_codes;
  at::Tensor slice;  // [B, 2] int64: codes [first, end) that are not learned
  at::Tensor whole;  // [2] float32: learned targets of the whole batch
  // Computed: at least what the sequences take together (else, or with a sequence longer than
  // `longest`, the losses are NaN), at most (B + 1) * longest.
  int64_t places = 0;
  // The gradients are overwritten instead of added to: saves clearing and reading them.
  bool overwrites = false;
};

struct GptStepResult {
  at::Tensor losses;            // [2] float32: text and audio, sums over targets / whole
  at::Tensor recall;            // [] float32: likewise, over the audio's; undefined without weight
  at::Tensor latents_gradient;  // [B, L, D] float32
};

class GptStep {
 public:
  // Under the DeviceScope of the weights' device. The tensors must stay where they are. Throws
  // Error(device) without CUDA, Error(internal) for shapes that do not fit each other.
  GptStep(const GptStepWeights& weights, const GptStepOptions& options);
  ~GptStep();

  // Forward, loss and backward on the current stream. `step` [] int64 and `seed` make the dropout
  // masks; losses are multiplied by `scale` [] float32 for the gradients only.
  GptStepResult run(const GptStepBatch& batch, const at::Tensor& step, const at::Tensor& scale,
                    uint64_t seed);

  // The same in pieces: piece 0 is the forward pass, the loss and the upper layers' backward pass,
  // the last one ends with the embeddings. After piece k all gradients of layers from
  // `first_layer(k)` on are final (and those of heads and last norms).
  int pieces() const;
  int64_t first_layer(int piece) const;
  void run_piece(int piece, const GptStepBatch& batch, const at::Tensor& step,
                 const at::Tensor& scale, uint64_t seed);
  GptStepResult result() const;

  // Forward only: the losses, and how many targets were the likeliest token: [2], [2].
  struct Judged {
    at::Tensor losses, hits;
  };
  Judged judge(const GptStepBatch& batch);

  uint64_t buffer_bytes() const;  // of activations and work space

  // The mask that a pass of this seed and step uses, for tests: 0 or 1 / (1 - dropout), [places, D]
  // float32. Mask 0 is that of the embeddings, 1 + 2 l and 2 + 2 l those of layer l's branches.
  at::Tensor dropout_mask(int64_t mask, int64_t places, const at::Tensor& step,
                          uint64_t seed) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem
