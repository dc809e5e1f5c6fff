// Clips of different length in one tensor: rows are zero beyond their length.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <vector>

namespace tandem {

struct Waves {
  at::Tensor samples;            // [B, T] float32, on any device
  std::vector<int64_t> lengths;  // of each row, at most T
  int sample_rate = 0;
};

}  // namespace tandem
