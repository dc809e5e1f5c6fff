// XTTS's GPT: text and audio codes in one sequence behind the conditioning latents.
//   [ latents (32) | START text STOP | start codes stop … ]
// Positions restart in each segment; the latents have none. Output: ln_f, then final_norm: the
// latents the vocoder speaks from, and what the heads read. Names are those of Coqui's files.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "nn/dropout.h"
#include "nn/layers.h"
#include "models/xtts/xtts_config.h"
#include "models/xtts/xtts_parameters.h"

namespace tandem {

// One trunk layer. Product weights are stored [in, out], as in the files.
struct XttsGptBlock {
  LayerNorm norm_attention, norm_mlp;         // ln_1, ln_2
  at::Tensor qkv_weight, qkv_bias;            // attn.c_attn  [D, 3D], [3D]
  at::Tensor project_weight, project_bias;    // attn.c_proj  [D, D]
  at::Tensor expand_weight, expand_bias;      // mlp.c_fc     [D, 4D]
  at::Tensor contract_weight, contract_bias;  // mlp.c_proj   [4D, D]
};

struct XttsGpt {
  XttsGptSize size;
  at::Tensor text_embedding, audio_embedding;  // [tokens, D]
  at::Tensor text_positions, audio_positions;  // [places, D]
  std::vector<XttsGptBlock> blocks;
  LayerNorm last_norm, final_norm;  // gpt.ln_f, then final_norm
  Linear text_head, audio_head;

  // Names behind `prefix`, which is `gpt.` in files: `text_embedding.weight`,
  // `gpt.h.0.ln_1.weight`, … Sizes come from the shapes; heads and token ids from `size`. Throws
  // Error(corrupt) for shapes that do not fit each other; what is missing, `weights` knows.
  static XttsGpt load(Weights& weights, const std::string& prefix, const XttsGptSize& size);
  static XttsGpt make(const XttsGptSize& size, uint64_t seed);
  void visit(const std::string& prefix, const VisitParameter& visit);
  // All tensors of this `size`; makes room for the layers.
  void list(const std::string& prefix, const ListTensor& tensor);

  // The trunk with both norms. inputs [B, T, D] -> [B, T, D]. Causal; `valid` [B, T] bool masks
  // keys (undefined: all). With gradients where the parameters want them; with `recompute` the
  // backward pass computes what is in the layers again instead of keeping it.
  at::Tensor hidden(const at::Tensor& inputs, const at::Tensor& valid = {},
                    const CountedDropout& dropout = {}, bool recompute = false) const;

  // The same with what came before: keys and values of all layers, which grow by the inputs.
  struct Past {
    std::vector<at::Tensor> keys, values;  // a layer: [B, heads, places, D / heads]
  };
  at::Tensor hidden(const at::Tensor& inputs, Past& past) const;
  // The input that follows a code: [1, 1, D]. `step` is 1 behind the first code.
  at::Tensor code_input(int64_t code, int64_t step) const;

  // Teacher forcing as Coqui's GPT.forward: text_ids [B, T], text_lengths [B], codes [B, N],
  // wave_lengths [B] in samples at 22.05 kHz, conditioning [B, 32, D]. A clip has
  // ceil(samples / 1024) codes; behind them it learns 4 stop tokens. Short texts are filled up with
  // their stop token. Both lengths on the CPU: no wait for the device.
  struct TeacherForced {
    at::Tensor loss_text, loss_audio;        // scalars, mean over tokens
    at::Tensor text_logits, audio_logits;    // [B, tokens, places]
    at::Tensor text_targets, audio_targets;  // [B, places], -1: not learned
  };
  TeacherForced teacher_forced(const at::Tensor& text_ids, const at::Tensor& text_lengths,
                               const at::Tensor& codes, const at::Tensor& wave_lengths,
                               const at::Tensor& conditioning, int64_t code_stride = 1024) const;

  // The same for training: shapes alone decide what is computed, no lengths are needed on the host,
  // and sums come out instead of means, so that parts of a batch add up. Rows whose lengths are 0
  // teach nothing.
  struct LearnBatch {
    at::Tensor text, text_lengths;   // [B, T] int64, [B]
    at::Tensor codes, code_lengths;  // [B, N] int64, [B]
    at::Tensor unlearned;            // [B, 2] int64: targets [first, end) of audio that are not
                                     // learned; undefined: none
    at::Tensor conditioning;         // [B, latents, D]
    // Whether audio sees the text's STOP, as it does when it is spoken. Coqui masks it.
    bool reads_stop = false;
    bool recalls = false;    // give Learned::recall_loss
    bool recompute = false;  // see hidden
  };
  struct Learned {
    at::Tensor text_loss, audio_loss;    // sums over targets
    at::Tensor text_count, audio_count;  // targets
    at::Tensor audio_hits;               // targets that were the likeliest code
    at::Tensor stop_hits, stop_count;    // of these, the first stop token of each row
    at::Tensor audio_latents;            // [B, N + 5, D]; place i speaks code i
    // How well the code that was read at a place can be told from its latent, by the embedding of
    // codes: a sum as the others. Undefined unless LearnBatch::recalls.
    at::Tensor recall_loss;
  };
  Learned learn(const LearnBatch& batch, const CountedDropout& dropout = {}) const;

  // The prompt's input vectors of one request: latents [32, D] or [1, 32, D], text with START and
  // STOP, and the start token: [1, 32 + T + 2 + 1, D]. Throws Error(data) for more text than there
  // are positions.
  at::Tensor prompt(const std::vector<int64_t>& text_ids, const at::Tensor& conditioning) const;
  // Latents of given codes (the stop token is one) in one pass: [1, N, D]; what each step of
  // decoding gives one by one.
  at::Tensor latents(const std::vector<int64_t>& text_ids, const std::vector<int64_t>& codes,
                     const at::Tensor& conditioning) const;
};

}  // namespace tandem
