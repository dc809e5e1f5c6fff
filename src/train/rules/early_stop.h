// Ends a run whose validation loss does not get better any more.
#pragma once

#include <cstdint>
#include <limits>

namespace tandem {

struct EarlyStopOptions {
  int64_t patience = 0;  // validations without a better loss; 0: never stops
  // Share of the loss by which it must fall to count as better. Smaller gains add up: they are
  // measured from the last loss that counted.
  double least_gain = 0;
};

// Saved with the checkpoint.
struct EarlyStopState {
  double best = std::numeric_limits<double>::infinity();
  int64_t best_step = 0;
  double counted = std::numeric_limits<double>::infinity();  // the last loss that was better enough
  int64_t waited = 0;                                        // validations since then
};

class EarlyStop {
 public:
  explicit EarlyStop(const EarlyStopOptions& options, const EarlyStopState& state = {})
      : options_(options), state_(state) {}

  // Losses of earlier steps are not compared with later ones any more.
  void forget_before(int64_t step);
  // True when this loss is the lowest so far. One that is not finite never is.
  bool validated(int64_t step, double loss);
  bool should_stop() const { return options_.patience > 0 && state_.waited >= options_.patience; }
  const EarlyStopState& state() const { return state_; }

 private:
  EarlyStopOptions options_;
  EarlyStopState state_;
};

}  // namespace tandem
