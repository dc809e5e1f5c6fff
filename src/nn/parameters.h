// A model is a struct of tensors; its parameters are visited by name in one place. Loading, saving,
// the optimizer, gradients, checksums and counts all use that visit.
#pragma once

#include <ATen/core/TensorBody.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

using VisitParameter = std::function<void(const std::string& name, at::Tensor& parameter)>;
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// A parameter of the given shape on the device of the open DeviceScope, drawn from a normal
// distribution of the given deviation (0: zeros). Drawn on the host from (seed, name): the same on
// every device.
at::Tensor make_parameter(uint64_t seed, const std::string& name, at::IntArrayRef shape,
                          double deviation, double mean = 0.0);

}  // namespace tandem
