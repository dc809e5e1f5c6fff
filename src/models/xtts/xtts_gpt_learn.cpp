// Teacher forcing with fixed shapes and sums, as training needs it.
#include <ATen/ATen.h>

#include "models/xtts/xtts_gpt.h"

namespace tandem {
namespace {

constexpr int64_t ignored = -1;
constexpr int64_t stops = 4;  // stop tokens a clip's codes are followed by

at::Tensor places(int64_t count, const at::Tensor& like) {
  return at::arange(count, like.options()).unsqueeze(0);
}

struct Judged {
  at::Tensor loss, count, hits;  // hits [B, T] bool
};

Judged judge(const Linear& head, const at::Tensor& latents, const at::Tensor& targets) {
  const at::Tensor logits = head(latents).to(at::kFloat);
  const at::Tensor loss = at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten(), {},
                                                 at::Reduction::Sum, ignored);
  return {loss, targets.ne(ignored).sum().to(at::kFloat), logits.detach().argmax(-1).eq(targets)};
}

}  // namespace

XttsGpt::Learned XttsGpt::learn(const LearnBatch& batch, const CountedDropout& dropout) const {
  const int64_t words = batch.text.size(1) + 2, sounds = batch.codes.size(1) + stops + 1;
  const at::Tensor text_lengths = batch.text_lengths.unsqueeze(1),
                   code_lengths = batch.code_lengths.unsqueeze(1);
  const at::Tensor there = text_lengths.gt(0).logical_and(code_lengths.gt(0));  // [B, 1]

  // START, the ids, STOP from there on; a target is the input that follows.
  const at::Tensor word = places(words, text_lengths);
  const at::Tensor ids = at::constant_pad_nd(batch.text, {0, 2}, size.stop_text_token);
  const at::Tensor text_targets = at::where(word < text_lengths, ids, size.stop_text_token);
  const at::Tensor text_inputs =
      at::cat({at::full_like(text_targets.narrow(1, 0, 1), size.start_text_token),
               text_targets.narrow(1, 0, words - 1)},
              1);
  const at::Tensor text_valid = (word <= text_lengths).logical_and(there);

  const at::Tensor sound = places(sounds, code_lengths);
  const at::Tensor codes = at::constant_pad_nd(batch.codes, {0, stops + 1}, size.stop_audio_token);
  const at::Tensor audio_targets = at::where(sound < code_lengths, codes, size.stop_audio_token);
  const at::Tensor audio_inputs =
      at::cat({at::full_like(audio_targets.narrow(1, 0, 1), size.start_audio_token),
               audio_targets.narrow(1, 0, sounds - 1)},
              1);
  const at::Tensor audio_valid = (sound < code_lengths + stops).logical_and(there);
  at::Tensor learned = audio_valid;
  if (batch.unlearned.defined()) {
    learned = learned.logical_and((sound < batch.unlearned.narrow(1, 0, 1))
                                      .logical_or(sound >= batch.unlearned.narrow(1, 1, 1)));
  }

  const int64_t prefix = batch.conditioning.size(1);
  const at::Tensor inputs =
      at::cat({batch.conditioning.to(text_embedding.scalar_type()),
               at::embedding(text_embedding, text_inputs) + text_positions.narrow(0, 0, words),
               at::embedding(audio_embedding, audio_inputs) + audio_positions.narrow(0, 0, sounds)},
              1);
  const at::Tensor all = at::ones({inputs.size(0), prefix}, text_valid.options());
  const at::Tensor text_keys =
      batch.reads_stop ? (word <= text_lengths + 1).logical_and(there) : text_valid;
  const at::Tensor latents =
      hidden(inputs, at::cat({all, text_keys, audio_valid}, 1), dropout, batch.recompute);

  const Judged text = judge(text_head, latents.narrow(1, prefix, words),
                            text_targets.masked_fill(~text_valid, ignored));
  Learned out;
  out.audio_latents = latents.narrow(1, prefix + words, sounds);
  const at::Tensor heard = audio_targets.masked_fill(~learned, ignored);
  const Judged audio = judge(audio_head, out.audio_latents, heard);
  if (batch.recalls) {
    const at::Tensor of_a_code = (sound > 0).logical_and(sound <= code_lengths).logical_and(there);
    out.recall_loss = judge({audio_embedding, {}}, out.audio_latents,
                            audio_inputs.masked_fill(~of_a_code, ignored))
                          .loss;
  }
  const at::Tensor first_stop = sound.eq(code_lengths).logical_and(learned);
  out.text_loss = text.loss;
  out.text_count = text.count;
  out.audio_loss = audio.loss;
  out.audio_count = audio.count;
  out.audio_hits = audio.hits.sum().to(at::kFloat);
  out.stop_hits = audio.hits.logical_and(first_stop).sum().to(at::kFloat);
  out.stop_count = first_stop.sum().to(at::kFloat);
  return out;
}

}  // namespace tandem
