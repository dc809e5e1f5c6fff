// What of a step is lost, and how it is said.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnose/rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem::rules {

bool disturbed(const Figures& figures) {
  const bool no_core_left = figures.core_load >= 0 &&
                            figures.others_load >= limits::others_in_the_way &&
                            figures.core_load + figures.others_load >= limits::cores_taken;
  return (figures.others_load >= limits::busy_machine || no_core_left) &&
         figures.lateness >= limits::worth_changing * figures.fed.median;
}

double lost_wait(const Figures& figures) {
  if (figures.recorded || figures.replay.count == 0) return figures.wait;
  if (!figures.queues_work) return figures.wait;
  return std::clamp(figures.fed.mean - figures.replay.mean, 0.0, figures.wait);
}

double wait_share(const Figures& figures) {
  return figures.fed.mean > 0 ? std::clamp(lost_wait(figures) / figures.fed.mean, 0.0, 1.0) : 0;
}

double lost_share(const Figures& figures) {
  const double slower = figures.replay.count > 0 && figures.fed.median > 0
                            ? 1 - figures.replay.median / figures.fed.median
                            : 0;
  return std::max({0.0, slower, wait_share(figures)});
}

std::string data_of(const Circumstances& now) { return now.config.data.train_data.value_or("DIR"); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string milliseconds(double seconds) { return fmt::format("{:.2f} ms", 1e3 * seconds); }

}  // namespace tandem::rules
