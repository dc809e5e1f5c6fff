// A part of a forward pass whose inner results are not kept: the backward pass computes them again
// from the part's inputs. Costs one more forward pass of the part, and saves all it would keep.
#pragma once

#include <ATen/core/TensorBody.h>

#include <functional>
#include <vector>

namespace tandem {

// A function of its arguments alone, which gives the same whenever it is called: no draws but
// counted ones. It may be called on another thread.
using RecomputedPart =
    std::function<at::Tensor(const at::Tensor& x, const std::vector<at::Tensor>& weights)>;

// part(x, weights), with gradients to those of them that want one.
at::Tensor recomputed(const RecomputedPart& part, const at::Tensor& x,
                      const std::vector<at::Tensor>& weights);

}  // namespace tandem
