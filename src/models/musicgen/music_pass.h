// One window of a batch of clips while it is made, a column of codes at a time: delay pattern,
// guidance and draw around MusicSteps.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/musicgen/delay_pattern.h"
#include "models/musicgen/music_draw.h"
#include "models/musicgen/music_steps.h"

namespace tandem {

struct MusicPassOptions {
  MusicDrawOptions draw;
  int64_t new_tokens = 0;  // columns behind the start and the prompt
  int64_t first_step = 0;  // number of the first draw
  bool keep = true;        // keys and values; false: everything again at each column
  bool batched = false;    // see MusicSteps
};

class MusicPass {
 public:
  // prompt [B, K, P] codes, or undefined. Throws Error(config) when the model has too few positions
  // or an option has no meaning. Weights and draws must outlive this.
  MusicPass(const MusicStepWeights& weights, const std::vector<at::Tensor>& texts,
            const at::Tensor& prompt, MusicDraws& draws, const MusicPassOptions& options);

  bool done() const { return column_ == pattern_.columns; }
  void step();  // one more column; the first call reads the prompt too

  const DelayPattern& pattern() const { return pattern_; }
  const MusicLogits& first_logits() const { return first_logits_; }  // kept for comparisons
  const at::Tensor& tokens() const { return tokens_; }  // [B, K, columns], pads where none is kept
  at::Tensor codes() const { return pattern_.codes(tokens_); }  // [B, K, frames], once done

 private:
  MusicDraws& draws_;
  MusicPassOptions options_;
  DelayPattern pattern_;
  std::unique_ptr<MusicSteps> steps_;
  at::Tensor tokens_;   // [B, K, columns]; -1 where they are still to be drawn
  int64_t column_ = 0;  // the next to be drawn
  int64_t fed_ = 0;     // columns the model has read
  int64_t drawn_ = 0;
  MusicLogits first_logits_;
};

}  // namespace tandem
