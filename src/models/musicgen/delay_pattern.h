// How the rows of codes are shifted against each other while they are generated: codebook k of a
// channel is k columns late. Column 0 is the start token. Stereo: codebooks of left and right take
// turns and share their delay.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

#include "models/musicgen/musicgen_config.h"

namespace tandem {

struct DelayPattern {
  int64_t codebooks = 4, channels = 1, pad_token = 2048;
  int64_t columns = 0;  // with the start column: 1 + new tokens (+ frames of the prompt)

  // Whether there are too few columns for a delay (fewer than 2 K - 1, K a channel): then all
  // columns behind the start are frames.
  bool applies() const;
  int64_t delay(int64_t codebook) const;
  int64_t frames() const;
  // Whether a token there is kept; elsewhere the pad token stands, whatever was drawn.
  bool kept(int64_t codebook, int64_t column) const;
  // codes [.., K, P] of a prompt -> tokens [.., K, columns] with -1 where they are to be drawn.
  at::Tensor forced(const at::Tensor& prompt_codes) const;
  // tokens [.., K, columns] -> codes [.., K, frames]
  at::Tensor codes(const at::Tensor& tokens) const;
};

}  // namespace tandem
