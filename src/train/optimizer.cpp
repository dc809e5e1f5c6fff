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
      rule_(options.rule),
      verdict_{.beta1 = options.rule.beta1,
               .beta2 = options.rule.beta2,
               .average_decay = options.rule.average_decay,
               .largest_norm = options.largest_norm,
               .spike_factor = options.spike_factor,
               .most_bad = options.most_bad},
      memory_(store.arenas().front().gradient.device()) {
  values_ = at::zeros({adamw_values}, memory_.norms.options());
}

at::Tensor Optimizer::step(const OptimizerInputs& inputs) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const AdamWBuffers& arena : store_.arenas()) gradients.push_back(arena.gradient);
  at::Tensor outcome =
      decide_step(gradients, inputs.learning_rate, inputs.divisor, memory_, verdict_, values_);
  for (const AdamWBuffers& arena : store_.arenas()) adamw_step(arena, values_, rule_);
  return outcome;
}

NamedTensors Optimizer::state(const std::string& prefix) const {
  return {{prefix + "steps", memory_.steps},
          {prefix + "norms", memory_.norms},
          {prefix + "norms.count", memory_.count},
          {prefix + "norms.spikes", memory_.spikes}};
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
