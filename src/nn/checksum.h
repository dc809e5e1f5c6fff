// A 64-bit checksum of a tensor's bits, the same on every device: equal bits give equal sums, and
// one changed bit anywhere changes it (up to a chance of 2^-64). Proves that replicas are
// identical.
#pragma once

#include <ATen/core/TensorBody.h>

#include <vector>

namespace tandem {

// int64 scalar on the tensor's own device; no wait for the host.
at::Tensor checksum(const at::Tensor& tensor);

// Of several tensors in order.
at::Tensor checksum(const std::vector<at::Tensor>& tensors);

}  // namespace tandem
