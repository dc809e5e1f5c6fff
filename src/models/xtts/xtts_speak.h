// Speech by plain tensor operations, one code after another: for samples of a model in training and
// for traces. `src/generate` is the fast way.
#pragma once

#include <vector>

#include "models/xtts/xtts.h"
#include "models/xtts/voice.h"
#include "nn/sample.h"

namespace tandem {

struct SpeakOptions {
  SampleOptions sampling;
  int64_t most_codes = 0;  // 0: what the model allows
  uint64_t seed = 0;
};

struct Spoken {
  std::vector<int64_t> codes;
  at::Tensor logits, latents;  // [N, audio tokens], [N, D] on the GPT's device
};

// conditioning [latents, D] or [1, latents, D].
Spoken speak_codes(const XttsGpt& gpt, const std::vector<int64_t>& text_ids,
                   const at::Tensor& conditioning, const SpeakOptions& options);

}  // namespace tandem
