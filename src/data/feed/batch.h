// One step's work for one replica: tensors of a fixed shape, on the device that asked for it.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <vector>

namespace tandem {

struct Batch {
  int64_t index = 0;               // position in the order of batches
  std::vector<at::Tensor> fields;  // each [rows, ...]; what they are, the maker's header says
  int64_t rows = 0;                // that hold something; they come first, the rest is padding
  int64_t whole_rows = 0;          // the same over all replicas
  std::vector<int64_t> clips;      // rows of the corpus behind `rows`
  std::vector<int64_t> sizes;      // of each of them, where the maker gives it: places it takes
};

}  // namespace tandem
