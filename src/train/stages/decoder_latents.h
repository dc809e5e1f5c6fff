// What the decoder learns to speak from: latents of the frozen GPT for the codes of clips, as
// decoding gives them, one a code. Some clips are spoken from the model's own codes: drawn from
// what it expects at each place of the clip, and read back by a second pass, so that latents carry
// its mistakes yet stay aligned with the recording. Static shapes, no wait for the device.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

#include "models/xtts/conditioning.h"
#include "models/xtts/xtts_gpt.h"

namespace tandem {

// On the device; rows with lengths of 0 give latents nobody reads.
struct SpokenRows {
  at::Tensor text, text_lengths;    // [B, T], [B]
  at::Tensor codes, code_lengths;   // [B, N], [B]
  at::Tensor conditioning;          // [B, mels, F], divided by mel_stats
  at::Tensor conditioning_lengths;  // [B] frames
};

class DecoderLatents {
 public:
  struct Options {
    double own_codes_share = 0.25;
    double temperature = 0.75;  // above 0
  };
  // Both on the device already, the GPT in the type it computes in.
  DecoderLatents(XttsGpt gpt, Conditioning conditioning, const Options& options);

  // [B, N, D] float32, without gradients. Draws are of (seed, row, step). Throws Error(data) for
  // more text or codes than the model has positions.
  at::Tensor operator()(const SpokenRows& rows, const at::Tensor& step, uint64_t seed) const;
  // From the clips' own codes alone.
  at::Tensor teacher_forced(const SpokenRows& rows) const;

  // Codes drawn from the logits of `latents` [B, N, D], never start or stop: [B, N].
  at::Tensor draw_codes(const at::Tensor& latents, const at::Tensor& rows, const at::Tensor& step,
                        uint64_t seed) const;
  // Which rows (of these identities) are spoken from them in this step: [B] bool.
  at::Tensor chosen(const at::Tensor& rows, const at::Tensor& step, uint64_t seed) const;

 private:
  struct Prompt {
    at::Tensor inputs;  // [B, latents + T + 2, D]: conditioning, START, text, STOP, padding
    at::Tensor places;  // [B] that are no padding
  };
  Prompt prompt(const SpokenRows& rows) const;
  at::Tensor pass(const Prompt& prompt, const at::Tensor& codes) const;

  XttsGpt gpt_;
  Conditioning conditioning_;
  Options options_;
};

}  // namespace tandem
