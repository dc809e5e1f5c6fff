#include "models/xtts/xtts_parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "tandem/error.h"

namespace tandem {

TensorStart start_for(int64_t inputs) {
  return {.deviation = 1.0 / std::sqrt(3.0 * static_cast<double>(inputs))};
}

ListTensor load_from(Weights& weights) {
  return [&weights](const std::string& name, at::Tensor& tensor, const Shape& shape,
                    const TensorStart&) {
    constexpr std::string_view ending = ".weight";
    const bool weight = name.ends_with(ending);
    tensor = weight ? weights.take_folded(name.substr(0, name.size() - ending.size()))
                    : weights.take(name);
    if (!tensor.defined() || tensor.sizes() == at::IntArrayRef(shape)) return;
    // Sizes are read from other tensors: when one of them is missing, that is the trouble to tell.
    if (!weights.missing().empty()) return;
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}`: `{}` has the shape [{}]; expected [{}] beside the others",
                            weights.source(), name, fmt::join(tensor.sizes(), ", "),
                            fmt::join(shape, ", ")));
  };
}

ListTensor draw_from(uint64_t seed) {
  return [seed](const std::string& name, at::Tensor& tensor, const Shape& shape,
                const TensorStart& start) {
    tensor = make_parameter(seed, name, shape, start.deviation, start.mean).requires_grad_(false);
  };
}

ListTensor pass_to(const VisitParameter& visit) {
  return [&visit](const std::string& name, at::Tensor& tensor, const Shape&, const TensorStart&) {
    if (tensor.defined()) visit(name, tensor);
  };
}

ListTensor count_into(int64_t& parameters) {
  return
      [&parameters](const std::string&, at::Tensor&, const Shape& shape, const TensorStart& start) {
        int64_t elements = 1;
        for (const int64_t size : shape) elements *= size;
        if (start.parameter) parameters += elements;
      };
}

Shape weight_shape(const Weights& weights, const std::string& name) {
  for (const char* form : {".weight", ".weight_v", ".parametrizations.weight.original1"})
    if (weights.has(name + form)) return weights.shape(name + form);
  return {};
}

}  // namespace tandem
