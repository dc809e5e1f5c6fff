// Sound from log mels without a model: a spectrum whose mels they are (non-negative least squares
// with the filters), and phases that fit it (Griffin and Lim's iteration with momentum). On the
// CPU, by the calling thread; for looking into training, not for speech. What mels do not tell
// stays lost: frequencies above f_max are silent.
#pragma once

#include <ATen/core/TensorBody.h>

#include "audio/signal/mel.h"

namespace tandem {

struct GriffinLimOptions {
  int iterations = 32;
  double momentum = 0.99;
  int spectrum_iterations = 100;
  uint64_t seed = 0;  // of the first phases
};

// [mels, frames] as log_mel gives it, not divided by mel_stats -> [(frames - 1) * hop] float32.
// Fewer than 2 frames give no samples. Front ends with `standardise` or `preemphasis` cannot be
// undone: Error(internal).
at::Tensor griffin_lim(const at::Tensor& log_mel, const MelOptions& mel,
                       const GriffinLimOptions& options = {});

// Its parts. Magnitudes [n_fft / 2 + 1, frames] whose mels are those given.
at::Tensor spectrum_of_mels(const at::Tensor& log_mel, const MelOptions& mel, int iterations = 100);
// Waves [samples] of those magnitudes.
at::Tensor wave_of_spectrum(const at::Tensor& magnitudes, const MelOptions& mel,
                            const GriffinLimOptions& options = {});

}  // namespace tandem
