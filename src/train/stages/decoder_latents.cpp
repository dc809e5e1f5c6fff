#include "train/stages/decoder_latents.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <limits>

#include "tandem/error.h"
#include "train/stages/counted_tensor.h"

namespace tandem {
namespace {

void check_positions(const char* what, int64_t needed, int64_t available) {
  if (needed <= available) return;
  throw Error(ErrorKind::data, fmt::format("a batch needs {} positions of {}; this model has {}",
                                           needed, what, available))
      .hint("drop longer clips: tandem prepare --max-seconds, --max-tokens");
}

at::Tensor gather_places(const at::Tensor& x, const at::Tensor& places) {
  return x.gather(1, places.unsqueeze(-1).expand({-1, -1, x.size(2)}));
}

at::Tensor count_up(int64_t count, const at::Tensor& like) {
  return at::arange(count, like.options()).unsqueeze(0);
}

}  // namespace

DecoderLatents::DecoderLatents(XttsGpt gpt, Conditioning conditioning, const Options& options)
    : gpt_(std::move(gpt)), conditioning_(std::move(conditioning)), options_(options) {}

DecoderLatents::Prompt DecoderLatents::prompt(const SpokenRows& rows) const {
  const int64_t count = rows.text.size(1) + 2;
  check_positions("text", count, gpt_.text_positions.size(0));
  const at::Tensor latents = conditioning_(rows.conditioning, rows.conditioning_lengths)
                                 .to(gpt_.text_embedding.scalar_type());
  const at::Tensor padded = at::constant_pad_nd(rows.text, {1, 1}, gpt_.size.start_text_token);
  const at::Tensor ids = at::where(count_up(count, rows.text) > rows.text_lengths.unsqueeze(1),
                                   gpt_.size.stop_text_token, padded);
  const at::Tensor text =
      at::embedding(gpt_.text_embedding, ids) + gpt_.text_positions.narrow(0, 0, count);
  return {at::cat({latents, text}, 1), rows.text_lengths + (latents.size(1) + 2)};
}

// Rows are moved together, so that codes follow their own text at once: then nothing needs a mask
// but the order of places, and padding stands behind everything.
at::Tensor DecoderLatents::pass(const Prompt& prompt, const at::Tensor& codes) const {
  const int64_t count = codes.size(1), before = prompt.inputs.size(1);
  check_positions("audio", count, gpt_.audio_positions.size(0));
  const at::Tensor read =
      at::constant_pad_nd(codes.narrow(1, 0, count - 1), {1, 0}, gpt_.size.start_audio_token);
  const at::Tensor audio =
      at::embedding(gpt_.audio_embedding, read) + gpt_.audio_positions.narrow(0, 0, count);
  const at::Tensor apart = at::cat({prompt.inputs, audio}, 1);
  const at::Tensor own = prompt.places.unsqueeze(1), place = count_up(before + count, codes);
  const at::Tensor together = at::where(place < own, place, place + before - own);
  const at::Tensor inputs = gather_places(apart, together.clamp_max(before + count - 1));
  return gather_places(gpt_.hidden(inputs), own + count_up(count, codes));
}

at::Tensor DecoderLatents::chosen(const at::Tensor& rows, const at::Tensor& step,
                                  uint64_t seed) const {
  return counted_units(seed, "own codes", rows, step) < options_.own_codes_share;
}

at::Tensor DecoderLatents::draw_codes(const at::Tensor& latents, const at::Tensor& rows,
                                      const at::Tensor& step, uint64_t seed) const {
  const at::Tensor logits = gpt_.audio_head(latents).to(at::kFloat) / options_.temperature;
  const int64_t places = logits.size(1), tokens = logits.size(2);
  const at::Tensor token = at::arange(tokens, rows.options());
  const at::Tensor silent =
      (token == gpt_.size.start_audio_token) | (token == gpt_.size.stop_audio_token);
  // The largest of logits with Gumbel's noise is a draw from their softmax.
  const at::Tensor key = counted_draw(seed, "drawn code", rows, step).view({-1, 1, 1});
  const at::Tensor draw = at::arange(places * tokens, rows.options()).view({1, places, tokens});
  const at::Tensor noise = -(-as_units(mix_bits(key.bitwise_xor(draw))).log()).log();
  return (logits + noise).masked_fill(silent, -std::numeric_limits<float>::infinity()).argmax(2);
}

at::Tensor DecoderLatents::teacher_forced(const SpokenRows& rows) const {
  const at::NoGradGuard no_grad;
  return pass(prompt(rows), rows.codes).to(at::kFloat);
}

at::Tensor DecoderLatents::operator()(const SpokenRows& rows, const at::Tensor& step,
                                      uint64_t seed) const {
  const at::NoGradGuard no_grad;
  const Prompt before = prompt(rows);
  const at::Tensor forced = pass(before, rows.codes);
  if (options_.own_codes_share <= 0) return forced.to(at::kFloat);
  const at::Tensor identity = row_identity(rows.codes, rows.code_lengths);
  const at::Tensor drawn = draw_codes(forced, identity, step, seed);
  const at::Tensor codes = at::where(chosen(identity, step, seed).unsqueeze(1), drawn, rows.codes);
  return pass(before, codes).to(at::kFloat);
}

}  // namespace tandem
