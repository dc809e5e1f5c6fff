// What is done to all tensors of a model's part: anything with `visit(prefix, VisitParameter)`.
#pragma once

#include <cstdint>

#include "nn/parameters.h"

namespace tandem {

template <class Part>
void move_to(Part& part, const std::string& prefix, const at::TensorOptions& options) {
  part.visit(prefix, [&](const std::string&, at::Tensor& tensor) { tensor = tensor.to(options); });
}

template <class Part>
uint64_t bytes_of(Part part) {  // a copy: of handles, not of what they hold
  uint64_t bytes = 0;
  part.visit("", [&](const std::string&, at::Tensor& tensor) { bytes += tensor.nbytes(); });
  return bytes;
}

}  // namespace tandem
