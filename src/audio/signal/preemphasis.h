// y[t] = x[t] - coefficient * x[t - 1]; before the first sample stands the second (reflection), or
// the first again when there is no other.
#pragma once

#include <cstdint>

#include "audio/signal/waves.h"

namespace tandem {

void preemphasise_clip(const float* in, int64_t samples, double coefficient, float* out);

Waves preemphasise(const Waves& waves, double coefficient = 0.97);

}  // namespace tandem
