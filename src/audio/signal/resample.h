// Changing the sample rate, equal to torchaudio.functional.resample with its defaults: a sinc with
// a Hann window over 6 zero crossings on each side, cut off at 0.99 of the lower rate's half. Any
// pair of rates. The first use of a pair makes its table, which is kept; all functions may be
// called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "audio/signal/waves.h"

namespace tandem {

// ceil(samples * to / from), without rounding errors. (torchaudio computes it in float32 and is one
// off for some long clips.)
int64_t resampled_length(int64_t samples, int from, int to);

// One clip on the CPU; `out` holds resampled_length() samples.
void resample_clip(const float* in, int64_t samples, int from, int to, float* out);

// All rows. Equal rates give the same tensor.
Waves resample(const Waves& waves, int to);

// The filter of one pair of rates, divided by their common factor. Output frame * phases + p is the
// sum over k of coefficients[p, k] * in[frame * stride + first[p] + k], `in` being zero outside.
struct ResampleTable {
  int stride = 1, phases = 1;
  int taps = 0;  // of a phase, filled up with zeros to a multiple of 8
  std::vector<int32_t> first;
  std::vector<float> coefficients;
};
std::shared_ptr<const ResampleTable> resample_table(int from, int to);

}  // namespace tandem
