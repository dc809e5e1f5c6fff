#include "train/rules/step_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/step_verdict.h"
#include "tandem/config.h"
#include "tandem/error.h"
#include "train/rules/loss_scale.h"

namespace tandem {

int64_t bad_steps_allowed(const TrainingConfig& training) {
  return training.max_bad_steps +
         (training.precision == "fp16" ? LossScaleOptions{}.halvings() : 0);
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
    worn_ = std::max<int64_t>(0, worn_ - 1);
    if (norm > 0) norms_.push_back(norm);
    if (static_cast<int64_t>(norms_.size()) > options_.window) norms_.pop_front();
    return;
  }
  last_bad_ = step;
  ++skipped_;
  ++in_a_row_;
  if (std::isfinite(norm)) worn_ += wear_of_a_spike;
  remark_ = std::isfinite(norm)
                ? fmt::format("step {} was left out: its gradient norm is {:.3g}, {}", step, norm,
                              usual())
                : fmt::format("step {} was left out: its gradient is not finite (loss {:.4g})",
                              step, loss);
  const bool worn_out = worn_ >= options_.max_bad_steps * wear_of_a_spike;
  if (in_a_row_ < options_.max_bad_steps && !worn_out) return;
  ended_ = true;
  const std::string last =
      std::isfinite(norm)
          ? fmt::format("a gradient norm of {:.3g}, {}", norm, usual())
          : fmt::format("a gradient that is not finite, and a loss of {:.4g}", loss);
  const std::string many =
      skipped_ == 1 ? "1 step was left out"
      : in_a_row_ >= options_.max_bad_steps
          ? fmt::format("{} steps in a row were left out", in_a_row_)
          : fmt::format("spikes come again and again, {} steps were left out", skipped_);
  throw Error(ErrorKind::numeric, fmt::format("{}; the last, step {}, had {}", many, step, last))
      .hint(
          "lower training.learning_rate or raise training.warmup_steps; "
          "`enable_eager_debug=true` names the first tensor that is not finite, and "
          "`spike_factor=0` accepts every finite gradient");
}

}  // namespace tandem
