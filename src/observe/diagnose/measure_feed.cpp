#include <algorithm>
#include <optional>
#include <thread>

#include "observe/diagnose/device_sampler.h"
#include "observe/diagnose/measure_parts.h"
#include "observe/diagnose/series.h"
#include "observe/diagnose/step_series.h"
#include "observe/diagnose/storage.h"
#include "observe/diagnose/timed_batches.h"

namespace tandem {

namespace {

// Shapes that come for the first time are captured and then replayed for good: only where they are
// met as often at the end as at the beginning does it go on like that.
void note_captures(const StepSeries& series, Figures& figures) {
  const size_t count = series.seconds.size(), warm_up = std::max<size_t>(1, warm_up_of(count));
  std::vector<double> capturing, replaying;
  size_t late = 0;
  for (size_t i = warm_up; i < count; ++i) {
    (series.settled[i] ? replaying : capturing).push_back(series.seconds[i] - series.waits[i]);
    if (!series.settled[i] && 2 * i >= count) ++late;
  }
  if (capturing.empty()) return;
  figures.captures = static_cast<double>(capturing.size()) /
                     static_cast<double>(capturing.size() + replaying.size());
  const double at_first = std::max(1 - series.settled_before, figures.captures);
  figures.captures_end =
      static_cast<double>(late) < 0.7 * at_first * static_cast<double>(count) / 2;
  figures.fed_is_settled = series.of_settled(series.seconds).size() < count;
  const double otherwise =
      replaying.empty() ? figures.replay.median : analyse_series(replaying, 0).median;
  figures.capture_cost = std::max(0.0, analyse_series(capturing, 0).median - otherwise);
}

}  // namespace

void measure_feed(Subject& subject, const MeasureOptions& options, Figures& figures) {
  TimedBatches timed(subject.batches());
  FeedOptions feeding = subject.feeding();
  feeding.first_batch += 1;  // not the one that was replayed, which is in every cache
  const double fit = options.most_seconds / std::max(1e-6, figures.replay.median);
  const auto steps = static_cast<int64_t>(std::clamp(
      fit, 10.0, std::max(10.0, static_cast<double>(options.batches) / figures.batches_a_step)));
  // Where steps are captured: every shape twice before it is replayed, in a third of the time.
  const auto settling = subject.unsettled(0) == 0
                            ? int64_t{0}
                            : static_cast<int64_t>(std::clamp(fit / 3, 10.0, 150.0));
  // As a run that starts now would find it, not as the looking around before left it.
  drop_from_cache(subject.files());
  DeviceSampler sampler(devices_to_watch(), options);
  Feed feed(timed, subject.data_device(), subject.models(), feeding);
  struct Moment {
    TimedBatches::Totals host;
    FeedCounters counters;
    double cores = 0, machine = -1;
    Clock::time_point time;
  } warm;
  const auto now = [&] {
    return Moment{timed.totals(), feed.counters(0), process_core_seconds(), machine_core_seconds(),
                  Clock::now()};
  };
  std::vector<std::optional<BatchLease>> held(subject.models().size());
  struct Seen {
    double rows = 0, batches = 0;
  };
  std::vector<Seen> seen(held.size());  // by rank, each written by its own thread
  const std::vector<StepSeries> all = on_all_ranks(subject, [&](int rank) {
    SeriesRequest request{.rank = rank, .steps = steps, .settling = settling};
    request.next = [&, rank]() -> const Batch* {
      std::optional<BatchLease>& lease = held[static_cast<size_t>(rank)];
      lease.reset();
      std::optional<BatchLease> next = feed.next(rank);
      if (!next) return nullptr;
      lease.emplace(std::move(*next));
      seen[static_cast<size_t>(rank)].rows += static_cast<double>((*lease)->rows);
      ++seen[static_cast<size_t>(rank)].batches;
      return &**lease;
    };
    if (rank == 0) {
      request.warm = [&] {
        warm = now();
        sampler.forget();
      };
    }
    return request;
  });
  const Moment end = now();
  held.clear();
  sampler.stop();
  const StepSeries& first = all.front();
  // Of all ranks: each has its share of a batch. The last batch of a bucket may be a small one.
  figures.rows = 0;
  for (const Seen& one : seen) figures.rows += one.rows / std::max(1.0, one.batches);
  const double passed = std::chrono::duration<double>(end.time - warm.time).count();
  const std::vector<double> waits = first.of_settled(first.waits);
  figures.fed = analyse_series(first.of_settled(first.seconds));
  figures.wait = analyse_series(waits, warm_up_of(waits.size())).mean;
  figures.lateness = first.launch.in_line * first.launches(1);
  figures.host = end.host.a_batch_since(warm.host);
  figures.core_load = (end.cores - warm.cores) / passed / figures.cores;
  if (end.machine >= 0 && warm.machine >= 0) {
    const double others = end.machine - warm.machine - (end.cores - warm.cores);
    const auto cpus = static_cast<double>(std::max(1U, std::thread::hardware_concurrency()));
    figures.others_load = std::clamp(others / passed / cpus, 0.0, 1.0);
  }
  const auto batches = static_cast<double>(
      std::max<uint64_t>(1, end.counters.moved.items - warm.counters.moved.items));
  figures.late_share = static_cast<double>(end.counters.late - warm.counters.late) / batches;
  const auto add = [&](const char* name, const QueueCounters& before, const QueueCounters& after) {
    figures.queues.push_back(
        {.name = name,
         .ready = std::clamp(1 - (after.empty_time - before.empty_time) / passed, 0.0, 1.0),
         .put_wait = (after.put_wait - before.put_wait) / batches,
         .get_wait = (after.get_wait - before.get_wait) / batches});
  };
  add("loaded", warm.counters.loaded, end.counters.loaded);
  add("prepared", warm.counters.prepared, end.counters.prepared);
  add("moved", warm.counters.moved, end.counters.moved);
  note_captures(first, figures);
  for (DeviceFigures& device : figures.devices) sampler.fill(device);
}

}  // namespace tandem
