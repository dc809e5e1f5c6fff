#include "models/musicgen/music_pass.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem {

MusicPass::MusicPass(const MusicStepWeights& weights, const std::vector<at::Tensor>& texts,
                     const at::Tensor& prompt, MusicDraws& draws, const MusicPassOptions& options)
    : draws_(draws), options_(options) {
  check_music_draw(options.draw);
  const MusicDecoderSize& size = weights.size;
  const auto clips = static_cast<int64_t>(texts.size());
  const int64_t prompted = prompt.defined() ? prompt.size(2) : 0;
  if (options.new_tokens < 1)
    throw Error(ErrorKind::config,
                fmt::format("{} new tokens; expected 1 or more", options.new_tokens));
  // The last column is drawn and never read.
  const int64_t read = prompted + options.new_tokens;
  if (read > size.positions) {
    throw Error(ErrorKind::config,
                fmt::format("{} tokens{} need as many positions; the model has {}", read,
                            prompted ? fmt::format(", {} of them of the prompt,", prompted) : "",
                            size.positions))
        .hint("ask for fewer tokens, or for windows");
  }
  pattern_ = {.codebooks = size.codebooks,
              .channels = size.channels,
              .pad_token = size.pad_token,
              .columns = 1 + read};
  tokens_ =
      pattern_.forced(prompt.defined() ? prompt : at::empty({clips, size.codebooks, 0}, at::kLong));
  column_ = 1 + prompted;
  steps_ = std::make_unique<MusicSteps>(weights, texts,
                                        MusicSteps::Options{.guided = options.draw.guided(),
                                                            .columns = read,
                                                            .keep = options.keep,
                                                            .batched = options.batched});
}

void MusicPass::step() {
  const int64_t from = options_.keep ? fed_ : 0;
  const MusicLogits logits = steps_->advance(tokens_.narrow(2, from, column_ - from));
  fed_ = column_;
  if (drawn_ == 0) first_logits_ = logits;
  const at::Tensor scores = guided_scores(logits.cond, logits.uncond, options_.draw.guidance_scale);
  // Drawn for columns that are forced too, as the reference does.
  const at::Tensor drawn = draws_(scores, options_.draw, options_.first_step + drawn_);
  at::Tensor column = tokens_.select(2, column_);
  column.copy_(at::where(column == -1, drawn, column));
  ++column_;
  ++drawn_;
}

}  // namespace tandem
