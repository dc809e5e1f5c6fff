// What a series of times tells: its middle, its spread, and whether it swings with a period.
//
// The first values are not counted: a loader that has just been started is slow, and says nothing
// of how it runs.
#pragma once

#include <cstddef>
#include <span>

namespace tandem {

struct SeriesFigures {
  size_t count = 0;  // without the warm-up
  double mean = 0, median = 0, deviation = 0;
  double p95 = 0, p99 = 0, lowest = 0, highest = 0;
  // Values after which the series repeats itself; 0: it does not. A slow batch every `period`.
  size_t period = 0;
  double swing = 0;  // with a period: from its low to its high phase, as a share of the mean

  double variation() const { return mean > 0 ? deviation / mean : 0; }
};

// How many of `count` values are warm-up: a fifth, at most 20.
size_t warm_up_of(size_t count);

SeriesFigures analyse_series(std::span<const double> values, size_t warm_up);
inline SeriesFigures analyse_series(std::span<const double> values) {
  return analyse_series(values, warm_up_of(values.size()));
}

}  // namespace tandem
