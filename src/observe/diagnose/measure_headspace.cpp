#include <algorithm>
#include <numeric>

#include "device/logical_device.h"
#include "observe/diagnose/kept_batches.h"
#include "observe/diagnose/measure_parts.h"
#include "observe/diagnose/series.h"
#include "observe/diagnose/stage_times.h"
#include "observe/diagnose/step_series.h"

namespace tandem {

namespace {

// Of steps that go through the same batches round after round: the mean over the batches of the
// middle time of each, which what comes between now and then does not move. The rounds are ours and
// no oscillation of the training's.
SeriesFigures analyse_rounds(const std::vector<double>& seconds, size_t round) {
  SeriesFigures figures = analyse_series(seconds);
  figures.period = 0;
  figures.swing = 0;
  const size_t warm_up = warm_up_of(seconds.size());
  if (seconds.size() < warm_up + 2 * round) return figures;
  double sum = 0;
  for (size_t phase = 0; phase < round; ++phase) {
    std::vector<double> times;
    for (size_t i = phase; i < seconds.size(); i += round)
      if (i >= warm_up) times.push_back(seconds[i]);
    sum += analyse_series(times, 0).median;
  }
  figures.mean = sum / static_cast<double>(round);
  return figures;
}

// What a step launches, on a core: by the thread that takes it and by those of its backward pass,
// for which it waits. These are asked when the warm-up ends and when all is done.
class LaunchTime {
 public:
  void begin() { before_ = backward(); }
  SpentTime a_step(const StepSeries& series, size_t ranks) const {
    SpentTime launch = series.launch * series.launches(1);
    launch.on_core +=
        series.launches(backward() - before_) / static_cast<double>(std::max<size_t>(1, ranks));
    return launch;
  }

 private:
  static double backward() { return threads_time("pt_autograd_").on_core; }
  double before_ = 0;
};

}  // namespace

void measure_headspace(Subject& subject, const MeasureOptions& options, Figures& figures) {
  const std::vector<LogicalDevice*> models = subject.models();
  Feed feed(subject.batches(), subject.data_device(), models, subject.feeding());
  std::vector<KeptBatches> kept = keep_batches(feed, models, figures);
  feed.wait_until_full(std::chrono::seconds(2));
  const auto cached = [&](size_t rank) { return kept[rank].all(); };
  const auto round =
      kept[0].size() / std::gcd(kept[0].size(), static_cast<size_t>(figures.batches_a_step));
  subject.work_alone(0);
  count_launches(subject, kept[0].first(), figures);
  // Every shape runs as it is, then is captured, then replayed.
  const auto shapes = static_cast<int64_t>(3 * kept[0].size());
  const auto start = Clock::now();
  run_steps(subject, {.rank = 0, .steps = shapes, .next = cached(0)});
  const double trial = std::max(1e-6, seconds_since(start) / static_cast<double>(shapes));
  // As many as fit into a quarter of the time, for each rank alone and for all together.
  const double most = options.most_seconds / 4 / trial;
  const auto steps =
      static_cast<int64_t>(std::clamp(most, 5.0, static_cast<double>(options.batches)));
  LaunchTime launching;
  for (size_t rank = 0; rank < models.size(); ++rank) {
    if (rank > 0) subject.work_alone(static_cast<int>(rank));
    const StepSeries own = run_steps(subject, {.rank = static_cast<int>(rank),
                                               .steps = steps,
                                               .next = cached(rank),
                                               .warm = [&] { launching.begin(); }});
    for (DeviceFigures& device : figures.devices)
      if (device.name == models[rank]->name()) device.own_step = analyse_series(own.seconds).median;
    if (models.size() == 1) {
      figures.replay = analyse_rounds(own.seconds, round);
      figures.launch = launching.a_step(own, 1);
    }
  }
  subject.work_together();
  const auto together = [&] {
    return on_all_ranks(subject,
                        [&](int rank) {
                          SeriesRequest request{.rank = rank,
                                                .steps = steps,
                                                .next = cached(static_cast<size_t>(rank))};
                          if (rank == 0) request.warm = [&] { launching.begin(); };
                          return request;
                        })
        .front();
  };
  if (models.size() > 1) {
    const StepSeries all = together();
    figures.replay = analyse_rounds(all.seconds, round);
    figures.launch = launching.a_step(all, models.size());
  }
  figures.replay_lateness = figures.launch.in_line;
  if (subject.turn_debugging(false)) {
    figures.unwatched_replay = analyse_series(together().seconds).median;
    subject.turn_debugging(true);
  }
}

}  // namespace tandem
