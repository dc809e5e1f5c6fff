// Each part of XTTS lists its tensors once, with name, shape and how they start. Loading, making,
// visiting and counting all walk that list.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "nn/parameters.h"

namespace tandem {

// How a tensor starts when it is made and not loaded: normal, or all `mean` without deviation.
struct TensorStart {
  double deviation = 0, mean = 0;
  bool parameter = true;  // false: a running statistic, which no optimizer touches
};
using Shape = std::vector<int64_t>;
using ListTensor = std::function<void(const std::string& name, at::Tensor& tensor,
                                      const Shape& shape, const TensorStart& start)>;

// What PyTorch's own layers start with, as a normal distribution of the same spread.
TensorStart start_for(int64_t inputs);

// Taken from `weights` with weight norm folded. A tensor of another shape than listed is
// Error(corrupt); a missing one is remembered by `weights`.
ListTensor load_from(Weights& weights);
// Drawn from (seed, name) on the device of the open DeviceScope, without gradients.
ListTensor draw_from(uint64_t seed);
ListTensor pass_to(const VisitParameter& visit);  // defined tensors only
ListTensor count_into(int64_t& parameters);       // nothing is allocated

// Of `name`.weight, in whichever form its weight norm is stored; empty when it is not there.
Shape weight_shape(const Weights& weights, const std::string& name);

}  // namespace tandem
