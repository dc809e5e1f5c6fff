#include "train/optimizer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

Optimizer::Optimizer(ParameterStore& store, const OptimizerOptions& options)
    : store_(store),
      options_(options),
      watch_(options.guard, store.arenas().front().gradient.device()) {
  const at::Device device = store.arenas().front().gradient.device();
  steps_ = at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  values_ = at::zeros({adamw_values}, at::TensorOptions(device).dtype(at::kFloat));
}

at::Tensor Optimizer::step(const OptimizerInputs& inputs) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms;
  for (const AdamWBuffers& arena : store_.arenas()) {
    if (arena.gradient.numel() > 0) norms.push_back(at::linalg_vector_norm(arena.gradient));
  }
  const at::Tensor norm = at::linalg_vector_norm(at::stack(norms)) / inputs.divisor;
  const at::Tensor good = watch_.judge(norm);
  at::Tensor factor = inputs.divisor.reciprocal();
  if (options_.largest_norm > 0)
    factor = factor * at::clamp_max(options_.largest_norm / (norm + 1e-6), 1.0);
  steps_.add_(good);
  const auto correction = [&](double beta) {
    return (1 - at::pow(at::Scalar(beta), steps_)).to(at::kFloat);
  };
  // The average of few steps must not hold on to where they began.
  const at::Tensor average =
      ((steps_ + 1) / (steps_ + 10)).clamp_max(options_.rule.average_decay).to(at::kFloat);
  values_.copy_(at::stack({inputs.learning_rate, correction(options_.rule.beta1),
                           correction(options_.rule.beta2), factor, average, good.to(at::kFloat)}));
  for (const AdamWBuffers& arena : store_.arenas()) adamw_step(arena, values_, options_.rule);
  return at::stack({norm, good.to(at::kFloat)});
}

NamedTensors Optimizer::state(const std::string& prefix) const {
  NamedTensors list = {{prefix + "steps", steps_}};
  for (const auto& [name, tensor] : watch_.state()) list.emplace_back(prefix + name, tensor);
  return list;
}

void copy_by_name(const NamedTensors& source, const NamedTensors& target, const std::string& what) {
  at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> given(source.begin(), source.end());
  std::vector<std::string> problems;
  for (const auto& [name, into] : target) {
    const auto found = given.find(name);
    if (found == given.end()) {
      problems.push_back(fmt::format("`{}` is missing", name));
    } else if (found->second.sizes() != into.sizes()) {
      std::ostringstream shapes;
      shapes << found->second.sizes() << " where " << into.sizes() << " was expected";
      problems.push_back(fmt::format("`{}` has shape {}", name, shapes.str()));
    }
  }
  if (!problems.empty()) {
    const size_t shown = std::min<size_t>(problems.size(), 8);
    const std::string rest =
        problems.size() > shown ? fmt::format(", and {} more", problems.size() - shown) : "";
    problems.resize(shown);
    throw Error(ErrorKind::corrupt,
                fmt::format("{} does not fit this model: {}{}", what, join(problems, ", "), rest))
        .hint("was it saved with another --model-size or --stage?");
  }
  for (const auto& [name, into] : target) {
    at::Tensor destination = into;
    destination.copy_(given[name]);
  }
}

}  // namespace tandem
