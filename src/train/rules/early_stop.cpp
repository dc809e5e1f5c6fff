#include "train/rules/early_stop.h"

#include <cmath>

namespace tandem {

void EarlyStop::forget_before(int64_t step) {
  if (state_.best_step < step) state_ = {};
}

bool EarlyStop::validated(int64_t step, double loss) {
  const bool lowest = std::isfinite(loss) && loss < state_.best;
  const double gain =
      std::isinf(state_.counted) ? 0 : options_.least_gain * std::abs(state_.counted);
  ++state_.waited;
  if (!lowest) return false;
  state_.best = loss;
  state_.best_step = step;
  if (loss <= state_.counted - gain) {
    state_.counted = loss;
    state_.waited = 0;
  }
  return true;
}

}  // namespace tandem
