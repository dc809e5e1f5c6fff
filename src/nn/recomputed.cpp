#include "nn/recomputed.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace tandem {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// In which precision the part was computed first: the backward pass runs outside of that scope.
class Autocast {
 public:
  static Autocast now() {
    return {at::autocast::is_autocast_enabled(at::kCUDA),
            at::autocast::get_autocast_dtype(at::kCUDA), at::autocast::is_autocast_cache_enabled()};
  }
  Autocast set() const {
    const Autocast before = now();
    at::autocast::set_autocast_enabled(at::kCUDA, enabled_);
    at::autocast::set_autocast_dtype(at::kCUDA, type_);
    at::autocast::set_autocast_cache_enabled(cached_);
    return before;
  }

 private:
  Autocast(bool enabled, at::ScalarType type, bool cached)
      : enabled_(enabled), type_(type), cached_(cached) {}
  bool enabled_;
  at::ScalarType type_;
  bool cached_;
};

struct Remembered : torch::CustomClassHolder {
  Remembered(RecomputedPart of, Autocast in) : part(std::move(of)), autocast(in) {}
  RecomputedPart part;
  Autocast autocast;
};

struct Recomputed : torch::autograd::Function<Recomputed> {
  static at::Tensor forward(AutogradContext* ctx, const RecomputedPart& part, const at::Tensor& x,
                            at::TensorList weights) {
    variable_list inputs = {x};
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    ctx->save_for_backward(inputs);
    ctx->saved_data["part"] =
        c10::IValue::make_capsule(c10::make_intrusive<Remembered>(part, Autocast::now()));
    return part(x, weights.vec());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto remembered =
        c10::static_intrusive_pointer_cast<Remembered>(ctx->saved_data["part"].toCapsule());
    const variable_list saved = ctx->get_saved_variables();
    variable_list inputs, wanted;
    for (const at::Tensor& input : saved) {
      inputs.push_back(input.detach());
      if (!input.requires_grad()) continue;
      inputs.back().requires_grad_(true);
      wanted.push_back(inputs.back());
    }
    at::Tensor out;
    {
      const at::AutoGradMode with_gradients(true);
      const Autocast before = remembered->autocast.set();
      out = remembered->part(inputs.front(), {inputs.begin() + 1, inputs.end()});
      before.set();
    }
    const variable_list found = torch::autograd::grad({out}, wanted, gradients);
    variable_list all = {{}};  // the part itself has none
    size_t next = 0;
    for (const at::Tensor& input : saved)
      all.push_back(input.requires_grad() ? found[next++] : at::Tensor());
    return all;
  }
};

}  // namespace

at::Tensor recomputed(const RecomputedPart& part, const at::Tensor& x,
                      const std::vector<at::Tensor>& weights) {
  if (!at::GradMode::is_enabled()) return part(x, weights);
  return Recomputed::apply(part, x, at::TensorList(weights));
}

}  // namespace tandem
