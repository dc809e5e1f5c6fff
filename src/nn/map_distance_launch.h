// The GPU side of map_distance.cpp.
#pragma once

#include <ATen/core/TensorBody.h>

namespace tandem {

struct MapShape {
  int64_t rows = 0, channels = 0, places = 0;
  int64_t numbers = 0;  // of a row: columns * channels * places, less than 2^31
  int64_t samples_a_place = 1;
  bool channels_last = false;
};
constexpr int64_t map_parts = 64;  // of a row, each a block's

// a, b without gaps in the order of `shape`; partial [rows, map_parts] float32.
void map_distance_cuda(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                       const MapShape& shape, const at::Tensor& partial);
// gradient [rows] float32 of the distances -> that of a, like a.
void map_distance_backward_cuda(const at::Tensor& gradient, const at::Tensor& a,
                                const at::Tensor& b, const at::Tensor& valid, const MapShape& shape,
                                const at::Tensor& a_gradient);

}  // namespace tandem
