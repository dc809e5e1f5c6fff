#include "train/optimizer.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

AdamW::AdamW(NamedTensors parameters, const AdamWOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const auto& [name, parameter] : parameters_) {
    means_.push_back(at::zeros_like(parameter).requires_grad_(false));
    squares_.push_back(at::zeros_like(parameter).requires_grad_(false));
    steps_.push_back(at::zeros({}, parameter.options().dtype(at::kFloat).requires_grad(false)));
  }
}

std::vector<at::Tensor> AdamW::gradients() const {
  std::vector<at::Tensor> gradients;
  for (const auto& [name, parameter] : parameters_) gradients.push_back(parameter.grad());
  return gradients;
}

at::Tensor AdamW::clip_gradients(double most) {
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients();
  const at::Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(all)));
  const at::Tensor factor = at::clamp_max(most / (norm + 1e-6), 1.0);
  at::_foreach_mul_(all, factor);
  return norm;
}

void AdamW::step() {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters;
  for (const auto& [name, parameter] : parameters_) parameters.push_back(parameter);
  at::_foreach_add_(steps_, 1);
  at::_fused_adamw_(parameters, gradients(), means_, squares_, {}, steps_, options_.learning_rate,
                    options_.beta1, options_.beta2, options_.weight_decay, options_.epsilon,
                    /*amsgrad=*/false, /*maximize=*/false);
}

void AdamW::clear_gradients() {
  for (const auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
}

NamedTensors AdamW::state() const {
  NamedTensors state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    state.emplace_back(parameters_[i].first + ".mean", means_[i]);
    state.emplace_back(parameters_[i].first + ".square", squares_[i]);
    state.emplace_back(parameters_[i].first + ".steps", steps_[i]);
  }
  return state;
}

void AdamW::load_state(const NamedTensors& saved) {
  copy_by_name(saved, state(), "optimizer.safetensors");
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
