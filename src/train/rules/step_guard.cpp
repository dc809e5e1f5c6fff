#include "train/rules/step_guard.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tandem/error.h"
#include "train/optimizer.h"

namespace tandem {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

at::Tensor step_is_good(const at::Tensor& norm, const at::Tensor& limit) {
  return at::isfinite(norm).logical_and(norm <= limit);
}

NormWatch::NormWatch(const StepGuardOptions& options, at::Device device) : options_(options) {
  norms_ = at::full({options.window}, infinity, at::TensorOptions(at::kFloat).device(device));
  count_ = at::zeros({}, at::TensorOptions(at::kLong).device(device));
  spikes_ = at::zeros_like(count_);
}

at::Tensor NormWatch::limit() const {
  const at::NoGradGuard no_grad;
  const at::Tensor none = at::full_like(norms_[0], infinity);
  if (options_.spike_factor == 0) return none;
  // Places without a norm sort last, so the median is in the middle of the others.
  const at::Tensor seen = count_.clamp_max(options_.window);
  const at::Tensor middle = at::floor_divide(seen - 1, 2).clamp_min(0).view({1});
  const at::Tensor median = std::get<0>(norms_.sort()).gather(0, middle).squeeze(0);
  return at::where(count_ >= options_.least, median * options_.spike_factor, none);
}

at::Tensor NormWatch::judge(const at::Tensor& norm) {
  const at::NoGradGuard no_grad;
  const at::Tensor value = norm.detach().to(at::kFloat).squeeze();
  const at::Tensor usual = step_is_good(value, limit());
  // Norms that stay high are no spike but where training has gone; clipping deals with them.
  const at::Tensor good =
      usual.logical_or(at::isfinite(value).logical_and(spikes_ >= options_.patience));
  spikes_.copy_(at::where(good, at::zeros_like(spikes_), spikes_ + at::isfinite(value)));
  const at::Tensor remembered = good.logical_and(value > 0);
  const at::Tensor place = count_.remainder(options_.window).view({1});
  const at::Tensor before = norms_.gather(0, place);
  norms_.scatter_(0, place, at::where(remembered, value, before));
  count_.add_(remembered.to(at::kLong));
  return good;
}

void NormWatch::load_state(const NamedTensors& saved) {
  copy_by_name(saved, state(), "the memory of gradient norms");
}

std::string StepGuard::usual() const {
  // A run that has just gone on has not heard of any.
  if (norms_.empty()) return fmt::format("{:g} times the usual or more", options_.spike_factor);
  std::vector<double> sorted(norms_.begin(), norms_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return fmt::format("the usual one {:.3g}", *middle);
}

void StepGuard::arrived(int64_t step, double loss, double norm, bool good) {
  remark_.clear();
  if (good) {
    in_a_row_ = 0;
    if (norm > 0) norms_.push_back(norm);
    if (static_cast<int64_t>(norms_.size()) > options_.window) norms_.pop_front();
    return;
  }
  ++skipped_;
  ++in_a_row_;
  remark_ = std::isfinite(norm)
                ? fmt::format("step {} was left out: its gradient norm is {:.3g}, {}", step, norm,
                              usual())
                : fmt::format("step {} was left out: its gradient is not finite (loss {:.4g})",
                              step, loss);
  if (in_a_row_ < options_.max_bad_steps) return;
  const std::string last =
      std::isfinite(norm)
          ? fmt::format("a gradient norm of {:.3g}, {}", norm, usual())
          : fmt::format("a gradient that is not finite, and a loss of {:.4g}", loss);
  throw Error(
      ErrorKind::numeric,
      fmt::format("{} left out; the last, step {}, had {}",
                  in_a_row_ == 1 ? "1 step was" : fmt::format("{} steps in a row were", in_a_row_),
                  step, last))
      .hint(
          "lower training.learning_rate or raise training.warmup_steps; "
          "`enable_eager_debug=true` names the first tensor that is not finite, and "
          "`spike_factor=0` accepts every finite gradient");
}

}  // namespace tandem
