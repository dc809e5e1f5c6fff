// How far two maps of features are apart: the mean of |a - b| over channels, columns and those
// places of each row that begin before its `valid` samples (one place at least). A kernel or two
// each way on a GPU where tensor operations take some thirty and go over the maps a dozen times.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

// a, b [B * columns, channels, places] of one type; valid [B] int64 -> [B] float32 (float64 of
// float64). Gradients go to both. The sums do not depend on the order in which blocks finish.
at::Tensor map_distance(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                        int64_t samples_a_place);

}  // namespace tandem
