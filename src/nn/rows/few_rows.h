// How a step of few rows is computed. Every choice gives the same bits; they differ in time only,
// and the older ones stay so that the newer can be held against them (tests, `tandem bench`), and
// for the models and GPUs the newer ones are not for.
#pragma once

namespace tandem {

struct FewRows {
  bool whole = true;  // all layers in one kernel where that runs (nn/rows/whole_step.h)
  bool early = true;  // where it does not, speech's attention fetches keys and values ahead
};

}  // namespace tandem
