#include "observe/diagnose/series.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "observe/diagnose/thresholds.h"

namespace tandem {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Correlation of the series with itself `lag` values later, -1 to 1.
double likeness(std::span<const double> values, double mean, double variance, size_t lag) {
  double sum = 0;
  const size_t pairs = values.size() - lag;
  for (size_t i = 0; i < pairs; ++i) sum += (values[i] - mean) * (values[i + lag] - mean);
  return sum / static_cast<double>(pairs) / variance;
}

// From the phase with the lowest mean to the one with the highest, as a share of the mean.
double swing_of(std::span<const double> values, size_t period, double mean) {
  double low = INFINITY, high = -INFINITY;
  for (size_t phase = 0; phase < period; ++phase) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = phase; i < values.size(); i += period, ++count) sum += values[i];
    low = std::min(low, sum / static_cast<double>(count));
    high = std::max(high, sum / static_cast<double>(count));
  }
  return mean > 0 ? (high - low) / mean : 0;
}

// The shortest lag at which the series is as like itself as at any: a peak, so that a drift, which
// is like itself at every short lag, is none. Three periods must fit.
size_t period_of(std::span<const double> values, double mean, double variance) {
  const size_t longest = values.size() / 3;
  if (longest < 2 || variance <= 0) return 0;
  // The likeness of noise is spread by 1/sqrt(n) around 0; many lags are looked at.
  const double least =
      std::max(limits::likeness_of_a_period, 4 / std::sqrt(static_cast<double>(values.size())));
  std::vector<double> like{1};
  for (size_t lag = 1; lag <= longest + 1; ++lag)
    like.push_back(likeness(values, mean, variance, lag));
  double best = 0;
  const auto is_peak = [&](size_t lag) {
    return like[lag] >= least && like[lag] > like[lag - 1] && like[lag] >= like[lag + 1];
  };
  for (size_t lag = 2; lag <= longest; ++lag)
    if (is_peak(lag)) best = std::max(best, like[lag]);
  for (size_t lag = 2; best > 0 && lag <= longest; ++lag)
    if (is_peak(lag) && like[lag] >= 0.9 * best) return lag;
  return 0;
}

}  // namespace

size_t warm_up_of(size_t count) { return std::min<size_t>(20, count / 5); }

SeriesFigures analyse_series(std::span<const double> values, size_t warm_up) {
  values = values.subspan(std::min(warm_up, values.size()));
  SeriesFigures figures{.count = values.size()};
  if (values.empty()) return figures;
  for (const double value : values) figures.mean += value;
  figures.mean /= static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - figures.mean) * (value - figures.mean);
  if (values.size() > 1)
    figures.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  figures.median = quantile(sorted, 0.5);
  figures.p95 = quantile(sorted, 0.95);
  figures.p99 = quantile(sorted, 0.99);
  figures.lowest = sorted.front();
  figures.highest = sorted.back();
  const size_t period =
      period_of(values, figures.mean, squares / static_cast<double>(values.size()));
  if (period == 0) return figures;
  const double swing = swing_of(values, period, figures.mean);
  if (swing < limits::smallest_swing) return figures;  // a clock's last digits repeat as well
  figures.period = period;
  figures.swing = swing;
  return figures;
}

}  // namespace tandem
