#include "nn/step_verdict.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "nn/step_verdict_launch.h"
#include "tandem/error.h"

namespace tandem {
namespace {

VerdictNumbers numbers(const VerdictMemory& memory, const VerdictRule& rule) {
  return {.beta1 = rule.beta1,
          .beta2 = rule.beta2,
          .average_decay = static_cast<float>(rule.average_decay),
          .largest_norm = static_cast<float>(rule.largest_norm),
          .spike_factor = static_cast<float>(rule.spike_factor),
          .window = memory.norms.numel(),
          .least = rule.least,
          .patience = rule.patience,
          .most_bad = rule.most_bad,
          .wear = wear_of_a_spike};
}

VerdictPlaces places(const VerdictMemory& memory) {
  return {memory.norms.mutable_data_ptr<float>(),    memory.count.mutable_data_ptr<int64_t>(),
          memory.spikes.mutable_data_ptr<int64_t>(), memory.steps.mutable_data_ptr<double>(),
          memory.bad.mutable_data_ptr<int64_t>(),    memory.worn.mutable_data_ptr<int64_t>()};
}

}  // namespace

VerdictMemory::VerdictMemory(const at::Device& device, int64_t window) {
  const at::TensorOptions here(device);
  norms = at::full({window}, HUGE_VALF, here.dtype(at::kFloat));
  count = at::zeros({}, here.dtype(at::kLong));
  spikes = at::zeros_like(count);
  steps = at::zeros({}, here.dtype(at::kDouble));
  bad = at::zeros_like(count);
  worn = at::zeros_like(count);
}

float spike_limit(const VerdictMemory& memory, const VerdictRule& rule) {
  const auto* norms = memory.norms.const_data_ptr<float>();
  const int64_t count = *memory.count.const_data_ptr<int64_t>(), window = memory.norms.numel();
  std::vector<float> sorted(norms, norms + window);
  const auto middle = sorted.begin() + middle_of(count, window);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return limit_of(*middle, count, numbers(memory, rule));
}

bool judge_norm(float norm, VerdictMemory& memory, const VerdictRule& rule) {
  return judge_cell(norm, spike_limit(memory, rule), places(memory), numbers(memory, rule));
}

at::Tensor decide_step(const std::vector<at::Tensor>& gradients, const at::Tensor& learning_rate,
                       const at::Tensor& divisor, VerdictMemory& memory, const VerdictRule& rule,
                       at::Tensor& values) {
  if (values.is_cuda()) {
#ifdef TANDEM_WITH_CUDA
    const at::Tensor outcome = at::empty({2}, values.options());
    const int64_t parts = squares_parts * static_cast<int64_t>(gradients.size());
    const at::Tensor partial = at::empty({parts}, values.options().dtype(at::kDouble));
    decide_step_cuda(gradients,
                     {learning_rate.const_data_ptr<float>(), divisor.const_data_ptr<float>(),
                      values.mutable_data_ptr<float>(), outcome.mutable_data_ptr<float>()},
                     places(memory), numbers(memory, rule), partial);
    return outcome;
#else
    throw Error(ErrorKind::internal, "this build has no CUDA, but a tensor is on a GPU");
#endif
  }
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients)
    if (gradient.numel() > 0)
      norms.push_back(at::linalg_vector_norm(gradient, 2, {}, false, at::kFloat));
  const at::Tensor norm = at::linalg_vector_norm(at::stack(norms)) / divisor;
  const float found = *norm.const_data_ptr<float>();
  const bool good = judge_norm(found, memory, rule);
  at::Tensor outcome = at::empty({2}, at::kFloat);
  write_values(found, good, *learning_rate.const_data_ptr<float>(),
               *divisor.const_data_ptr<float>(), places(memory), numbers(memory, rule),
               values.mutable_data_ptr<float>(), outcome.mutable_data_ptr<float>());
  return outcome;
}

}  // namespace tandem
