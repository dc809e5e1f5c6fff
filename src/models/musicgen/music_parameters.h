// How the tensors MusicGen's parts list (models/xtts/xtts_parameters.h) are loaded and made.
#pragma once

#include <cstdint>

#include "checkpoint/weights.h"
#include "models/xtts/xtts_parameters.h"

namespace tandem {

// Taken from `weights` with weight norm folded. A tensor of another shape than config.json asks for
// is Error(corrupt); a missing one is remembered by `weights`.
ListTensor load_as_configured(Weights& weights);

// Drawn from (seed, name) on the device of the open DeviceScope, without gradients. Tensors of more
// than a million numbers repeat one block of that many draws, begun at a place of their own: models
// of billions of parameters are made in seconds, for measurements. The block's length is prime, so
// that no two rows of a matrix are equal.
ListTensor draw_repeating(uint64_t seed);

}  // namespace tandem
