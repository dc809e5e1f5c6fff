#include "generate/music_checks.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem {
namespace {

void check_text(const std::vector<int64_t>& ids, size_t clip, int64_t vocabulary, int64_t longest) {
  if (static_cast<int64_t>(ids.size()) > longest) {
    throw Error(ErrorKind::data, fmt::format("the caption of clip {} has {} ids; expected at most "
                                             "{}",
                                             clip, ids.size(), longest));
  }
  for (const int64_t id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    throw Error(ErrorKind::data, fmt::format("the caption of clip {} has the id {}; the text "
                                             "encoder knows 0 to {}",
                                             clip, id, vocabulary - 1));
  }
}

void check_prompt(const at::Tensor& prompt, size_t clip, const MusicDecoderSize& size,
                  int64_t frames) {
  const int64_t own = prompt.defined() ? prompt.size(-1) : 0;
  if (own != frames) {
    throw Error(ErrorKind::data, fmt::format("the prompt of clip {} has {} frames, that of clip 0 "
                                             "{}; prompts of a batch are of one length",
                                             clip, own, frames));
  }
  if (!prompt.defined()) return;
  if (prompt.dim() != 2 || prompt.size(0) != size.codebooks) {
    throw Error(ErrorKind::data, fmt::format("the prompt of clip {} has {} codebooks; the model "
                                             "has {}",
                                             clip, prompt.size(0), size.codebooks));
  }
  if (own > 0 &&
      (prompt.min().item<int64_t>() < 0 || prompt.max().item<int64_t>() >= size.vocabulary)) {
    throw Error(ErrorKind::data, fmt::format("the prompt of clip {} has codes outside 0 to {}",
                                             clip, size.vocabulary - 1));
  }
}

}  // namespace

MusicDrawOptions draw_options_of(const MusicSampling& sampling) {
  return {.greedy = sampling.greedy,
          .temperature = sampling.temperature,
          .top_p = sampling.top_p,
          .guidance_scale = sampling.guidance_scale,
          .top_k = sampling.top_k};
}

int64_t check_music_batch(const std::vector<MusicRequest>& batch, const MusicOptions& options,
                          const MusicgenConfig& config) {
  check_music_draw(draw_options_of(options.sampling));
  if (batch.empty()) return 0;
  const at::Tensor& first = batch.front().prompt;
  const int64_t frames = first.defined() ? first.size(-1) : 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    check_text(batch[i].text_ids, i, config.text.vocabulary, options.longest_text);
    check_prompt(batch[i].prompt, i, config.decoder, frames);
  }
  return frames;
}

}  // namespace tandem
