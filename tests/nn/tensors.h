// What tests of tensors share.
#pragma once

#include <ATen/ATen.h>

#include <cstring>

namespace tandem::tests {

// The same type, shape and bits; NaNs and signs of zero count.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

inline double number(const at::Tensor& scalar) { return scalar.detach().item<double>(); }

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return number((a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max());
}

}  // namespace tandem::tests
