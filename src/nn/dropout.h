// Dropout whose mask is counted: a function of (seed, step, branch, row, place of the number in its
// row), so that it does not depend on threads, devices or resuming, nor on the batch a row is in
// where it is told who its rows are. The step is read on the device, which a captured pass needs.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

struct CountedDropout {
  double share = 0;  // of the numbers that become 0; the others grow by 1 / (1 - share)
  uint64_t seed = 0;
  at::Tensor step;  // [] int64, on the device of what is dropped
  // [B] int64 there: what tells the rows of [B, ...] apart, whatever batch they are in. Undefined:
  // all is one row.
  at::Tensor rows = {};

  at::Tensor operator()(const at::Tensor& x, uint64_t branch) const;
};

// The factors alone: 0 or 1 / (1 - share), of `like`'s shape and type.
at::Tensor dropout_factors(const CountedDropout& dropout, const at::Tensor& like, uint64_t branch);

}  // namespace tandem
