#include "train/stages/code_noise.h"

#include <ATen/ATen.h>

#include "train/batches/gpt_batches.h"
#include "train/stages/counted_tensor.h"

namespace tandem {
namespace {

constexpr int64_t unlearned_target = -1;

// [B, N + 5]: the codes, then stops; `unlearned_target` where a row teaches nothing.
at::Tensor audio_targets(const XttsGpt::LearnBatch& batch, int64_t stop) {
  const int64_t places = batch.codes.size(1) + stop_targets + 1;
  const at::Tensor lengths = batch.code_lengths.unsqueeze(1);
  const at::Tensor place = at::arange(places, lengths.options()).unsqueeze(0);
  const at::Tensor codes = at::constant_pad_nd(batch.codes, {0, stop_targets + 1}, stop);
  at::Tensor learned = (place < lengths + stop_targets)
                           .logical_and(lengths.gt(0))
                           .logical_and(batch.text_lengths.unsqueeze(1).gt(0));
  if (batch.unlearned.defined()) {
    learned = learned.logical_and((place < batch.unlearned.narrow(1, 0, 1))
                                      .logical_or(place >= batch.unlearned.narrow(1, 1, 1)));
  }
  return at::where(place < lengths, codes, stop).masked_fill(~learned, unlearned_target);
}

}  // namespace

at::Tensor noisy_codes(const at::Tensor& codes, const at::Tensor& lengths, const CodeNoise& noise) {
  if (noise.kinds < 2) return codes;
  const at::Tensor clip = row_identity(codes, lengths).unsqueeze(1);
  const at::Tensor place = at::arange(codes.size(1), codes.options()).unsqueeze(0);
  const at::Tensor words =
      mix_bits(at::bitwise_xor(counted_draw(noise.seed, "code noise", clip, noise.step), place));
  // The upper bits decide whether, the lower ones which: never the code itself.
  const at::Tensor ahead =
      at::remainder(at::bitwise_and(words, int64_t{0xffffffff}), noise.kinds - 1) + 1;
  const at::Tensor others = at::remainder(codes + ahead, noise.kinds);
  return at::where(as_units(words) < noise.share, others, codes);
}

XttsGpt::Learned learn_reading(const XttsGpt& gpt, const XttsGpt::LearnBatch& batch,
                               const at::Tensor& read, const CountedDropout& dropout) {
  XttsGpt::LearnBatch heard = batch;
  heard.codes = read;
  XttsGpt::Learned learned = gpt.learn(heard, dropout);
  const at::Tensor logits = gpt.audio_head(learned.audio_latents).to(at::kFloat);
  const at::Tensor targets = audio_targets(batch, gpt.size.stop_audio_token);
  learned.audio_loss = at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten(), {},
                                              at::Reduction::Sum, unlearned_target);
  learned.audio_hits = learned.stop_hits = learned.stop_count = at::Tensor();
  return learned;
}

}  // namespace tandem
