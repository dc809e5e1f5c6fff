// One corpus as two: what is trained on and what is validated on. A clip's side follows from its id
// and the share alone, so it stays there whatever the order of the clips, the seed, or what is
// added to the corpus.
#pragma once

#include <cstdint>
#include <vector>

#include "data/corpus/clip_index.h"

namespace tandem {

enum class Side { all, training, validation };

// Those of `rows` that lie on `side`, in their order. With a share above 0 each side has a clip
// where there are two or more: the one whose id comes nearest. A single clip is trained on.
std::vector<int64_t> rows_of_side(const ClipIndex& index, const std::vector<int64_t>& rows,
                                  Side side, double validation_share);

}  // namespace tandem
