// A part of a batch.
#pragma once

#include "data/feed/batch.h"

namespace tandem {

// Rows [first, first + count): views of its fields, and what is said of those rows that hold
// something. `whole_rows` stays.
Batch rows_of(const Batch& batch, int64_t first, int64_t count);

}  // namespace tandem
