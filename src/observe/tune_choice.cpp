#include "observe/tune_choice.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "util/text.h"

namespace tandem {
namespace {

int64_t number_of(const TuneTrial& trial, const char* key) {
  const auto found = trial.settings.find(key);
  return found == trial.settings.end() ? 0 : parse_int(found->second).value_or(0);
}

}  // namespace

const TuneTrial* best_trial(const std::vector<TuneTrial>& trials,
                            const std::function<bool(const TuneTrial&)>& allowed,
                            double tolerance) {
  const TuneTrial* fastest = nullptr;
  for (const TuneTrial& trial : trials)
    if (allowed(trial) && (!fastest || trial.reading.speed > fastest->reading.speed))
      fastest = &trial;
  if (!fastest) return nullptr;
  const TuneReading& best = fastest->reading;
  const double unit = 0.01 * std::max(1.0, best.peak_bytes);  // less is no difference
  const auto cost = [&](const TuneTrial& trial) {
    return std::tuple(std::round(trial.reading.peak_bytes / unit),
                      number_of(trial, "data.num_workers"), number_of(trial, "data.buffer_size"));
  };
  const double most_wait = std::max(DepthSearch{}.wait_allowed, best.wait_share);
  const TuneTrial* chosen = fastest;
  for (const TuneTrial& trial : trials) {
    const TuneReading& reading = trial.reading;
    if (!allowed(trial) || reading.wait_share > most_wait) continue;
    if (best.speed > reading.speed * (1 + in_doubt(best, reading, tolerance))) continue;
    if (cost(trial) < cost(*chosen)) chosen = &trial;
  }
  return chosen;
}

}  // namespace tandem
