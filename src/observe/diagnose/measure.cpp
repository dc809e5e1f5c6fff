#include "observe/diagnose/measure.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "device/logical_device.h"
#include "device/registry.h"
#include "observe/checks_gpu.h"
#include "observe/device_load.h"
#include "observe/diagnose/stage_times.h"
#include "observe/diagnose/step_series.h"
#include "observe/diagnose/storage.h"
#include "observe/diagnose/timed_batches.h"
#include "tandem/error.h"
#include "util/threads.h"

namespace tandem {
namespace {

// Reads the devices again and again on a thread of its own.
class Sampler {
 public:
  Sampler(std::vector<LogicalDevice*> devices, const MeasureOptions& options)
      : load_(std::move(devices)), options_(options), thread_([this] { work(); }) {}
  ~Sampler() { stop(); }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    readings_.clear();
    clocks_.clear();
  }
  // After stop.
  void fill(DeviceFigures& device) const {
    std::vector<double> busy;
    for (const std::vector<DeviceReading>& all : readings_)
      for (const DeviceReading& one : all)
        if (one.name == device.name && one.utilisation >= 0) busy.push_back(one.utilisation);
    device.utilisation = analyse_series(busy, 0);
    double clocks = 0, braked = 0, capped = 0, count = 0;
    for (const ClockReading& one : clocks_) {
      if (one.index != device.index || one.clock < 0) continue;
      clocks += one.clock;
      braked += one.braked;
      capped += one.power_capped;
      ++count;
    }
    if (count == 0) return;
    device.clock = clocks / count;
    device.braked = braked / count;
    device.power_capped = capped / count;
  }

 private:
  void work() {
    const std::chrono::duration<double> every(options_.sample_every);
    while (true) {
      {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, every, [&] { return stopping_; })) return;
      }
      auto reading = load_.read();
      const auto clocks =
          options_.read_clocks ? options_.read_clocks() : std::vector<ClockReading>();
      const std::lock_guard lock(mutex_);
      readings_.push_back(std::move(reading));
      clocks_.insert(clocks_.end(), clocks.begin(), clocks.end());
    }
  }
  DeviceLoad load_;
  const MeasureOptions& options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<std::vector<DeviceReading>> readings_;
  std::vector<ClockReading> clocks_;
  std::thread thread_;  // last: it uses all of the above
};

// One thread a rank. The first failure is thrown once all have ended.
std::vector<StepSeries> on_all_ranks(Subject& subject,
                                     const std::function<SeriesRequest(int)>& request) {
  const size_t ranks = subject.models().size();
  std::vector<StepSeries> all(ranks);
  std::vector<std::exception_ptr> failures(ranks);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        all[rank] = run_steps(subject, request(static_cast<int>(rank)));
      } catch (...) {
        failures[rank] = std::current_exception();
        subject.gave_up(static_cast<int>(rank));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return all;
}

std::vector<DeviceFigures> devices_of(Subject& subject) {
  std::vector<DeviceFigures> figures;
  for (LogicalDevice* device : devices_to_watch()) {
    const std::vector<LogicalDevice*> models = subject.models();
    figures.push_back({.name = device->name(),
                       .index = device->original_index(),
                       .holds_model = std::ranges::find(models, device) != models.end(),
                       .prepares = device == &subject.data_device(),
                       .real = device->kind() == DeviceKind::cuda});
  }
  return figures;
}

void read_memory(Figures& figures) {
  DeviceLoad load(devices_to_watch());
  for (const DeviceReading& reading : load.read()) {
    for (DeviceFigures& device : figures.devices) {
      if (device.name != reading.name) continue;
      device.limit = reading.limit;
      const uint64_t peak = DeviceRegistry::get().find(device.name).memory().peak();
      device.peak = std::max({device.peak, reading.used, reading.name == "/CPU:0" ? 0 : peak});
    }
  }
}

// Batches of a rank, kept on its device and given again and again.
class KeptBatches {
 public:
  void add(const Batch& batch, LogicalDevice& device) {
    Batch copy = batch;
    device.compute_stream().run([&] {
      const at::NoGradGuard no_grad;
      for (at::Tensor& field : copy.fields) field = field.clone();
    });
    device.compute_stream().synchronize();
    batches_.push_back(std::move(copy));
  }
  Subject::NextBatch all() {
    return [this] { return &batches_[next_++ % batches_.size()]; };
  }
  Subject::NextBatch first() const {
    return [this] { return &batches_.front(); };
  }
  size_t size() const { return batches_.size(); }

 private:
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

// As many as there are buckets by default, so that batches of all lengths are among them: one batch
// says nothing of the others where clips are of unlike lengths. Fewer where they would take more
// than a little of the memory, or where the feed is too slow to wait for.
constexpr size_t most_kept = 8;
constexpr double most_memory_kept = 0.02, seconds_to_wait = 3;

std::vector<KeptBatches> keep_batches(Feed& feed, const std::vector<LogicalDevice*>& models,
                                      Figures& figures) {
  std::vector<KeptBatches> kept(models.size());
  const auto began = Clock::now();
  double bytes = 0;
  do {
    for (size_t rank = 0; rank < models.size(); ++rank) {
      const std::optional<BatchLease> lease = feed.next(static_cast<int>(rank));
      if (!lease) throw Error(ErrorKind::data, "the data gives no batch");
      kept[rank].add(**lease, *models[rank]);
      if (rank > 0) continue;
      for (const at::Tensor& field : (*lease)->fields) bytes += static_cast<double>(field.nbytes());
    }
    if (kept[0].size() == 1) figures.first_batch = seconds_since(began);
    const auto limit = static_cast<double>(models.front()->info().memory_limit);
    const double next = bytes * (1 + 1 / static_cast<double>(kept[0].size()));
    if (limit > 0 && next > most_memory_kept * limit) break;
  } while (kept[0].size() < most_kept && seconds_since(began) < seconds_to_wait);
  return kept;
}

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

// Replays some batches of every rank while the feed rests, alone and together.
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
  for (size_t rank = 0; rank < models.size(); ++rank) {
    if (rank > 0) subject.work_alone(static_cast<int>(rank));
    const StepSeries own =
        run_steps(subject, {.rank = static_cast<int>(rank), .steps = steps, .next = cached(rank)});
    for (DeviceFigures& device : figures.devices)
      if (device.name == models[rank]->name()) device.own_step = analyse_series(own.seconds).median;
    if (models.size() == 1) {
      figures.replay = analyse_rounds(own.seconds, round);
      figures.launch = own.launch * own.launches(1);
    }
  }
  subject.work_together();
  const auto together = [&] {
    return on_all_ranks(subject,
                        [&](int rank) {
                          return SeriesRequest{.rank = rank,
                                               .steps = steps,
                                               .next = cached(static_cast<size_t>(rank))};
                        })
        .front();
  };
  if (models.size() > 1) {
    const StepSeries all = together();
    figures.replay = analyse_rounds(all.seconds, round);
    figures.launch = all.launch * all.launches(1);
  }
  figures.replay_lateness = figures.launch.in_line;
  if (subject.turn_debugging(false)) {
    figures.unwatched_replay = analyse_series(together().seconds).median;
    subject.turn_debugging(true);
  }
}

void note_captures(const StepSeries& series, Figures& figures) {
  const size_t warm_up = warm_up_of(series.seconds.size());
  std::vector<double> capturing, replaying;
  int64_t captures = 0;
  for (size_t i = std::max<size_t>(1, warm_up); i < series.seconds.size(); ++i) {
    const int64_t more = series.captures[i] - series.captures[i - 1];
    captures += more;
    (more > 0 ? capturing : replaying).push_back(series.seconds[i] - series.waits[i]);
  }
  const size_t counted = capturing.size() + replaying.size();
  if (counted == 0 || captures == 0) return;
  figures.captures = static_cast<double>(captures) / static_cast<double>(counted);
  const double otherwise =
      replaying.empty() ? figures.replay.median : analyse_series(replaying, 0).median;
  figures.capture_cost = std::max(0.0, analyse_series(capturing, 0).median - otherwise);
}

// The feed from its start, and the steps that eat from it.
void measure_feed(Subject& subject, const MeasureOptions& options, Figures& figures) {
  TimedBatches timed(subject.batches());
  FeedOptions feeding = subject.feeding();
  feeding.first_batch += 1;  // not the one that was replayed, which is in every cache
  const double fit = options.most_seconds / std::max(1e-6, figures.replay.median);
  const auto steps = static_cast<int64_t>(std::clamp(
      fit, 10.0, std::max(10.0, static_cast<double>(options.batches) / figures.batches_a_step)));
  // As a run that starts now would find it, not as the looking around before left it.
  drop_from_cache(subject.files());
  Sampler sampler(devices_to_watch(), options);
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
  const std::vector<StepSeries> all = on_all_ranks(subject, [&](int rank) {
    SeriesRequest request{.rank = rank, .steps = steps};
    request.next = [&, rank]() -> const Batch* {
      std::optional<BatchLease>& lease = held[static_cast<size_t>(rank)];
      lease.reset();
      std::optional<BatchLease> next = feed.next(rank);
      if (!next) return nullptr;
      lease.emplace(std::move(*next));
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
  const size_t warm_up = warm_up_of(first.seconds.size());
  const double passed = std::chrono::duration<double>(end.time - warm.time).count();
  figures.fed = analyse_series(first.seconds);
  figures.wait = analyse_series(first.waits, warm_up).mean;
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

}  // namespace

Figures measure(Subject& subject, const MeasureOptions& options) {
  Figures figures{.batches_a_step = subject.batches_a_step(),
                  .queues_work = subject.queues_work(),
                  .devices = devices_of(subject),
                  .cores = static_cast<int>(std::max<size_t>(1, allowed_cpus().size()))};
  measure_headspace(subject, options, figures);
  time_stages(subject, figures);
  measure_feed(subject, options, figures);
  figures.parts = subject.parts();
  figures.low_precision_speed = low_precision_speed(*subject.models().front());
  read_memory(figures);
  const ColdRead cold = read_cold(subject.files());
  figures.storage = {.batch_bytes = subject.bytes_read_a_batch(),
                     .rate = cold.rate,
                     .rate_of_four = cold.rate_of_four};
  return figures;
}

std::vector<ClockReading> read_gpu_clocks() {
  constexpr uint64_t power_cap = 0x4, brakes = 0x8 | 0x20 | 0x40 | 0x80;  // NVML's reasons
  std::vector<ClockReading> readings;
  for (const GpuHealth& gpu : read_gpu_health(DeviceRegistry::get().probe())) {
    if (!gpu.clock || !gpu.most_clock || *gpu.most_clock == 0) continue;
    const uint64_t reasons = gpu.clock_reasons.value_or(0);
    readings.push_back({.index = gpu.index,
                        .clock = static_cast<double>(*gpu.clock) / *gpu.most_clock,
                        .braked = (reasons & brakes) != 0,
                        .power_capped = (reasons & power_cap) != 0});
  }
  return readings;
}

}  // namespace tandem
