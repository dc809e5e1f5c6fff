// What all signal work on ragged batches shares.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "audio/signal/waves.h"

namespace tandem {

// Waves are our own making: an Error(internal) that names `work` when they are not as waves.h says.
void check_waves(const Waves& waves, std::string_view work);

at::Tensor row_lengths(const std::vector<int64_t>& lengths, const at::Device& device);  // int64 [B]

// True where a row of `width` places still has samples, [B, width].
at::Tensor within_rows(const std::vector<int64_t>& lengths, int64_t width,
                       const at::Device& device);

// Where the sample at `place` of a row of `length` samples comes from when the row is reflected at
// both ends, as often as needed; the end samples are not repeated. A single sample is repeated.
constexpr int64_t reflected(int64_t place, int64_t length) {
  if (place >= 0 && place < length) return place;
  if (length < 2) return 0;
  const int64_t period = 2 * (length - 1);
  place %= period;
  if (place < 0) place += period;
  return place < length ? place : period - place;
}

// Rows [starts[b], starts[b] + lengths[b]) of each row in a tensor of `width` columns, zero beyond.
Waves cut(const Waves& waves, const std::vector<int64_t>& starts, std::vector<int64_t> lengths,
          int64_t width);

}  // namespace tandem
