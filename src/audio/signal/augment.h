// Augmentation in training. A row's result depends on its own samples, its id and the seed, not on
// the batch it is in.
#pragma once

#include <cstdint>
#include <vector>

#include "audio/signal/waves.h"

namespace tandem {

// White noise added at `snr_db` of each row (energy of the row over energy of the noise). Silence
// stays silence. `draw` counts the times the same clip is used, as by epoch.
Waves add_noise(const Waves& waves, const std::vector<double>& snr_db, uint64_t seed,
                const std::vector<uint64_t>& ids, uint64_t draw = 0);

// The pitch of each row moved by `semitones`, at the same length: torchaudio.functional.pitch_shift
// with its defaults (phase vocoder with n_fft 512, then resampling). 0 leaves a row as it is. Rows
// are worked on one after the other.
Waves pitch_shift(const Waves& waves, const std::vector<double>& semitones);

}  // namespace tandem
