// How a step of few rows is computed. Every choice gives the same bits; they differ in time only,
// and the older ones stay so that the newer can be held against them (tests, `tandem bench`).
#pragma once

#include "nn/new_kernels.h"

namespace tandem {

struct FewRows {
  // Products leave room for the next kernel beside them (RowProduct::roomy).
  bool roomy = new_kernel("few_rows");
  // Norm, product and attention in one kernel where that runs.
  bool joined = new_kernel("few_rows");
  // Where it does not, speech's attention fetches keys and values ahead.
  bool early = new_kernel("few_rows");
};

}  // namespace tandem
