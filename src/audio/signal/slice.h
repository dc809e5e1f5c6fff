// A random part of each row: where it begins depends on (seed, id, draw) and the row's length
// alone.
#pragma once

#include <cstdint>
#include <vector>

#include "audio/signal/waves.h"

namespace tandem {

struct Sliced {
  Waves waves;  // [B, length]; shorter rows are kept whole and filled up with zeros
  std::vector<int64_t> starts;
};

// `ids` name the clips, one a row; `draw` counts the slices taken of the same clip, as by epoch.
Sliced random_slice(const Waves& waves, int64_t length, uint64_t seed,
                    const std::vector<uint64_t>& ids, uint64_t draw = 0);

}  // namespace tandem
