// The vocoder as it is trained: the weights of `ups` and `resblocks` as a scale and a direction
// (w = scale * direction / |direction| over all dimensions but the first, which is the input
// channel of a transposed convolution). Names are those of Coqui's files, so a checkpoint of it
// reads like one of theirs.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <vector>

#include "models/xtts/vocoder.h"

namespace tandem {

class NormedVocoder {
 public:
  // Copies of its tensors, on their device: scale |w|, direction w.
  explicit NormedVocoder(const Vocoder& folded);

  // Numbers that are trained: those of a folded one, and a scale a channel.
  static int64_t count_parameters(const Vocoder::Size& size);

  // `ups.0.parametrizations.weight.original0` (scale), `….original1` (direction), `ups.0.bias`, …
  void visit(const std::string& prefix, const VisitParameter& visit);

  // Folded again, in type `compute`; gradients reach the parameters.
  Vocoder fold(at::ScalarType compute) const;
  const Vocoder& shape() const { return shape_; }  // sizes and rates; its tensors are undefined

 private:
  struct Entry {
    std::string name;
    at::Tensor scale;  // undefined: not normalised
    at::Tensor value;  // the direction, or the tensor itself
  };
  Vocoder shape_;
  std::vector<Entry> entries_;  // in the order of Vocoder::list
};

}  // namespace tandem
