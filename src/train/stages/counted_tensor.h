// counted_draw() of util/counted_random.h for tensors, on any device: draws that depend on numbers
// only the device knows.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <string_view>

namespace tandem {

at::Tensor mix_bits(const at::Tensor& words);  // int64, as unsigned

// `id` and `count` are int64 and broadcast against each other. The same bits as counted_draw.
at::Tensor counted_draw(uint64_t seed, std::string_view purpose, const at::Tensor& id,
                        const at::Tensor& count);
// The upper 23 bits of such numbers as float32 in (0, 1): never 0, never 1.
at::Tensor as_units(const at::Tensor& words);
at::Tensor counted_units(uint64_t seed, std::string_view purpose, const at::Tensor& id,
                         const at::Tensor& count);

// One number for each row of `values` [B, N] int64, of its first `lengths` [B] values: the same
// whatever batch the row is in.
at::Tensor row_identity(const at::Tensor& values, const at::Tensor& lengths);

}  // namespace tandem
