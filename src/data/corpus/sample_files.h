// Clips that are files of one name with different endings: in folders (a.wav, a.txt) or in tars.
#pragma once

#include "data/corpus/dataset.h"

namespace tandem {

// Both fill `clips` and `bad_rows` of a dataset whose layout is known.
void read_pairs(Dataset& dataset);
void read_tars(Dataset& dataset);

}  // namespace tandem
