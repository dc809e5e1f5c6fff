// What of a corpus is kept beside its index, so that it need not be made again each epoch: mels for
// the DVAE, codes for the GPT.
#pragma once

#include "observe/diagnose/figures.h"

namespace tandem {

// Fills `index`, `features_cached` and `dvae_file` by what the settings name and the disk holds.
void note_kept_features(Circumstances& now);

}  // namespace tandem
