// Wrong codes among those the GPT reads while it learns. Trained on recordings alone it has never
// read a code of its own, and when it speaks, one unlucky draw leads it to places it does not know;
// a share of other codes teaches it to go on from the text all the same. What it is to say stays
// what was recorded.
#pragma once

#include "models/xtts/xtts_gpt.h"

namespace tandem {

struct CodeNoise {
  double share = 0;   // of the codes that become others
  int64_t kinds = 0;  // codes are below it; start and stop are not
  uint64_t seed = 0;
  at::Tensor step;  // [] int64, on the device of the codes: a captured pass reads it there
};

// codes [B, N] int64 with `lengths` [B]: the same with some replaced. Which and by what depends on
// (seed, step, the clip's codes, place) alone, not on the clip's row or the device.
at::Tensor noisy_codes(const at::Tensor& codes, const at::Tensor& lengths, const CodeNoise& noise);

// XttsGpt::learn reading `read` [B, N] in place of batch.codes, which remain the targets. Of the
// result, hits and stops are not counted.
XttsGpt::Learned learn_reading(const XttsGpt& gpt, const XttsGpt::LearnBatch& batch,
                               const at::Tensor& read, const CountedDropout& dropout = {});

}  // namespace tandem
