// Integrated loudness of mono clips by ITU-R BS.1770-4: K-weighting for any sample rate, blocks of
// 400 ms with 75 % overlap, gates at -70 LUFS and 10 LU below the mean. A clip shorter than 400 ms
// is measured as one block; silence has a loudness of minus infinity. On CUDA each 100 ms start the
// filters 100 ms earlier from rest, which changes the result by less than 1e-6 LU.
#pragma once

#include <cstdint>

#include "audio/signal/loudness_gate.h"
#include "audio/signal/waves.h"

namespace tandem {

// The filters of the recommendation, moved to `sample_rate`.
KWeighting k_weighting(int sample_rate);

// What brings a clip to `target` LUFS without a sample over `limit` (0: no limit).
double gain_of_clip(const float* in, int64_t samples, int sample_rate, double target, double limit);

double loudness_of_clip(const float* in, int64_t samples, int sample_rate);  // LUFS

// float64 [B] on the device of the samples.
at::Tensor integrated_loudness(const Waves& waves);

// Each row scaled to `target_lufs`, but no sample over `peak_limit` (0: no limit). Rows without
// loudness keep their scale, up to the limit.
Waves normalise_loudness(const Waves& waves, double target_lufs, double peak_limit);

}  // namespace tandem
