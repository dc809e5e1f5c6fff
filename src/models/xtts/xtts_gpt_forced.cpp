// Teacher forcing: both segments as inputs and targets, the masks, the two losses.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "models/xtts/xtts_gpt.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr int64_t ignored = -1;
constexpr int64_t stop_tokens = 3;  // behind a clip's codes, and one more that ends the targets

// Places 0 .. count - 1 of each row against its length: [B, count].
at::Tensor up_to(const at::Tensor& lengths, int64_t count) {
  return at::arange(count, lengths.options()).unsqueeze(0) <= lengths.unsqueeze(1);
}

// One segment: `tokens` [B, T] of which each row's first `lengths` count, the rest being `stop`.
struct Segment {
  at::Tensor inputs, targets;  // [B, T + 2]
  at::Tensor valid;            // [B, T + 2], of the inputs as keys, and of the targets
};

Segment make_segment(const at::Tensor& tokens, const at::Tensor& lengths, int64_t start,
                     int64_t stop) {
  const int64_t count = tokens.size(1) + 2;
  Segment segment;
  segment.inputs = at::constant_pad_nd(at::constant_pad_nd(tokens, {0, 1}, stop), {1, 0}, start);
  segment.valid = up_to(lengths, count);
  segment.targets = at::constant_pad_nd(tokens, {0, 2}, stop).masked_fill(~segment.valid, ignored);
  return segment;
}

// [B, T, D] -> logits [B, tokens, T] and their mean loss over the targets that are learned.
std::pair<at::Tensor, at::Tensor> judge(const Linear& head, const at::Tensor& latents,
                                        const at::Tensor& targets) {
  const at::Tensor logits = head(latents).transpose(1, 2);
  const at::Tensor loss =
      at::cross_entropy_loss(logits.to(at::kFloat), targets, {}, at::Reduction::Mean, ignored);
  return {logits, loss};
}

void check(const char* what, int64_t needed, int64_t available) {
  if (needed <= available) return;
  throw Error(ErrorKind::data, fmt::format("a batch needs {} positions of {}; this model has {}",
                                           needed, what, available))
      .hint("drop longer clips: tandem prepare --max-seconds, --max-tokens");
}

}  // namespace

XttsGpt::TeacherForced XttsGpt::teacher_forced(
    const at::Tensor& text_ids, const at::Tensor& text_lengths, const at::Tensor& codes,
    const at::Tensor& wave_lengths, const at::Tensor& conditioning, int64_t code_stride) const {
  const at::Device device = text_embedding.device();
  const at::Tensor real_codes = at::div(wave_lengths + (code_stride - 1), code_stride, "floor");
  const int64_t longest_text = text_lengths.max().item<int64_t>();
  const int64_t longest_audio = real_codes.max().item<int64_t>() + stop_tokens;
  check("text", longest_text + 2, text_positions.size(0));
  check("audio", longest_audio + 2, audio_positions.size(0));
  const auto place = [&](const at::Tensor& x) { return x.to(device, at::kLong, true); };

  const at::Tensor text_sizes = place(text_lengths), audio_sizes = place(real_codes);
  const Segment texts = make_segment(place(text_ids).narrow(1, 0, longest_text), text_sizes,
                                     size.start_text_token, size.stop_text_token);

  const int64_t given = std::min(codes.size(1), longest_audio);
  const at::Tensor audio =
      at::constant_pad_nd(place(codes).narrow(1, 0, given), {0, longest_audio - given}, 0);
  const Segment audios =
      make_segment(at::where(up_to(audio_sizes - 1, longest_audio), audio, size.stop_audio_token),
                   audio_sizes + stop_tokens, size.start_audio_token, size.stop_audio_token);

  const int64_t prefix = conditioning.size(1), words = texts.inputs.size(1),
                sounds = audios.inputs.size(1);
  const at::Tensor inputs = at::cat(
      {conditioning.to(text_embedding.scalar_type()),
       at::embedding(text_embedding, texts.inputs) + text_positions.narrow(0, 0, words),
       at::embedding(audio_embedding, audios.inputs) + audio_positions.narrow(0, 0, sounds)},
      1);
  const at::Tensor all = at::ones({inputs.size(0), prefix}, texts.valid.options());
  const at::Tensor latents = hidden(inputs, at::cat({all, texts.valid, audios.valid}, 1));

  TeacherForced out;
  out.text_targets = texts.targets;
  out.audio_targets = audios.targets;
  std::tie(out.text_logits, out.loss_text) =
      judge(text_head, latents.narrow(1, prefix, words), texts.targets);
  std::tie(out.audio_logits, out.loss_audio) =
      judge(audio_head, latents.narrow(1, prefix + words, sounds), audios.targets);
  return out;
}

}  // namespace tandem
