// A feed that keeps up may still be in the way of the step: for its cores, its copies, its device.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnose/feed_rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem::rules {

Found slowed(const Figures& figures, const Circumstances& now) {
  if (figures.recorded || figures.replay.count == 0 || figures.fed.count == 0) return std::nullopt;
  const double longer = figures.fed.median / std::max(figures.replay.median, 1e-9) - 1;
  const double unexplained = figures.fed.median - figures.replay.median - lost_wait(figures) -
                             (figures.fed_is_settled ? 0 : figures.captures * figures.capture_cost);
  if (disturbed(figures) || longer < limits::slowed_by_the_feed ||
      unexplained < limits::slowed_by_the_feed * figures.replay.median) {
    return std::nullopt;
  }
  const Stages stages = stages_of(figures, now);
  const DataConfig& data = now.config.data;
  const double later = figures.lateness - figures.replay_lateness;
  const double in_line = figures.host.wall > 0 ? figures.host.in_line / figures.host.wall : 0;
  const double gain = unexplained / figures.fed.median;
  Diagnosis found{.expected_gain = gain};
  // Where this process leaves cores free, whoever is in the way is not its workers.
  const bool crowded = data.num_workers > 1 && figures.host.wall > 0 &&
                       (figures.core_load < 0 || figures.core_load >= limits::crowded_cores);
  if (crowded && (later >= 0.5 * unexplained || in_line >= limits::standing_in_line)) {
    const int64_t fewer = std::max<int64_t>(
        1, std::min<int64_t>(data.num_workers / 2, workers_needed(figures, stages.step)));
    found.verdict = Bottleneck::too_many_workers;
    found.evidence.push_back(
        {"launch_lateness", figures.lateness,
         fmt::format("the thread that launches stands in line for a core {} a step ({} without "
                     "the feed); {} threads decode on {} cores",
                     milliseconds(figures.lateness), milliseconds(figures.replay_lateness),
                     data.num_workers, figures.cores)});
    found.remedy = more_workers(fewer, "fewer threads leave a core to the step");
  } else if (copies_on_demand(now)) {
    found = transfer(figures, now, stages);
    found.expected_gain = gain;
  } else if (now.data_on_model && figures.prepare >= 0.5 * unexplained) {
    found = data_device(figures, now, stages);
    found.expected_gain = std::max(found.expected_gain, gain);
  } else {
    return std::nullopt;
  }
  found.evidence.insert(
      found.evidence.begin(),
      {"headspace", lost_share(figures),
       fmt::format("a fed step takes {}, one that replays a batch {}, and {} of it waits for data",
                   milliseconds(figures.fed.median), milliseconds(figures.replay.median),
                   milliseconds(lost_wait(figures)))});
  found.named = headspace(figures);
  return found;
}

}  // namespace tandem::rules
