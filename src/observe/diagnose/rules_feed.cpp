// Rules about what comes before the step: storage, decoding, preparation, copies, queues.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/diagnose/rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem::rules {
namespace {

// Seconds a batch, as far as each stage can overlap the others.
struct Stages {
  double host = 0, prepare = 0, move = 0, step = 0;
  double others_than_host() const { return std::max({prepare, move, step}); }
};

bool copies_on_demand(const Circumstances& now) {
  const DataConfig& data = now.config.data;
  return !now.data_on_model && (!data.prefetch_to_gpu || !data.optimize_cpu_gpu_overlap);
}

Stages stages_of(const Figures& figures, const Circumstances& now) {
  const auto workers = static_cast<double>(std::max<int64_t>(1, now.config.data.num_workers));
  Stages stages{.host = figures.host.wall / workers,
                .prepare = figures.prepare,
                .move = figures.move,
                .step = figures.replay.mean / figures.batches_a_step};
  // A device that prepares and trains one after the other needs the time of both for a batch.
  if (now.takes_turns && figures.prepare > limits::worth_changing * stages.step)
    stages.prepare += stages.step;
  // So does a batch that is copied when it is asked for.
  if (copies_on_demand(now) && figures.move > limits::worth_changing * stages.step)
    stages.move += stages.step;
  return stages;
}

// The time of a step once a batch comes every `batch` seconds, against the step as it is.
double gain_of(const Figures& figures, double batch) {
  const double step = std::max(figures.replay.mean, batch * figures.batches_a_step);
  return figures.fed.mean > 0 ? std::clamp(1 - step / figures.fed.mean, 0.0, 1.0) : 0;
}

Evidence headspace(const Figures& figures) {
  return {"headspace", lost_share(figures), "share of a fed step that a replay saves"};
}

void prove(Diagnosis& found, const Figures& figures) {
  found.evidence.insert(
      found.evidence.begin(),
      {"wait_share", wait_share(figures),
       fmt::format("{} of a step waits for data ({} of {})", percent(wait_share(figures)),
                   milliseconds(lost_wait(figures)), milliseconds(figures.fed.mean))});
  for (const QueueFigures& queue : figures.queues)
    found.evidence.push_back({queue.name + "_ready", queue.ready,
                              fmt::format("the queue of {} batches was ready {} of the time",
                                          queue.name, percent(queue.ready))});
  if (figures.fed.period > 0)
    found.evidence.push_back({"period", static_cast<double>(figures.fed.period),
                              fmt::format("step times swing by {} with a period of {} steps",
                                          percent(figures.fed.swing), figures.fed.period)});
  const bool whole_step = found.verdict == Bottleneck::data_device_bound ||
                          found.verdict == Bottleneck::transfer_bound ||
                          found.verdict == Bottleneck::too_many_workers;
  found.named = whole_step ? headspace(figures)
                           : Evidence{"wait_share", wait_share(figures),
                                      "share of a step that waits for data"};
}

// Features that are made once instead of every epoch, where the stage reads such; else empty. What
// is changed at random each time cannot be kept.
Remedy cached_features(const Circumstances& now, const std::string& why) {
  const DataConfig& data = now.config.data;
  if (now.features_cached || data.noise_snr_db || data.pitch_shift_semitones > 0) return {};
  // Of an index all that was said when it was made stays; made anew it would have to be said again.
  Remedy remedy{.command = {"prepare", now.index.empty() ? data_of(now) : now.index}, .why = why};
  std::vector<std::string>& words = remedy.command;
  if (now.index.empty() && data.language) words.insert(words.end(), {"--language", *data.language});
  words.emplace_back("--cache");
  if (now.config.training.stage == "dvae") {
    // The front end of the DVAE, whatever data.mel says.
    words.insert(words.end(), {"mels", "data.mel=xtts_dvae", "data.sample_rate=22050"});
  } else if (now.config.training.stage == "gpt" && !now.dvae_file.empty()) {
    words.insert(words.end(), {"codes", "--dvae", now.dvae_file});
  } else {
    return {};
  }
  if (data.trim_top_db) words.push_back(fmt::format("data.trim_top_db={}", *data.trim_top_db));
  if (data.target_loudness_lufs)
    words.push_back(fmt::format("data.target_loudness_lufs={}", *data.target_loudness_lufs));
  return remedy;
}

// The GPT hears its clips all the same: its cache saves the preparation alone.
Remedy nothing_to_decode(const Circumstances& now, const std::string& why) {
  return now.config.training.stage == "dvae" ? cached_features(now, why) : Remedy();
}

Remedy look_at_data(const Circumstances& now, const std::string& why) {
  return {.command = {"doctor", "--data", data_of(now)}, .why = why};
}

// Workers that read and decode a batch in the time the rest takes, with some room.
int64_t workers_needed(const Figures& figures, double target) {
  const double needed = figures.host.wall / (limits::room_for_workers * std::max(target, 1e-6));
  return static_cast<int64_t>(
      std::clamp(std::ceil(needed), 1.0, static_cast<double>(limits::most_workers)));
}

Remedy more_workers(int64_t workers, const std::string& why) {
  return {.settings = {fmt::format("data.num_workers={}", workers)}, .why = why};
}

// Readers that sleep wait for the disk. Where the disk, asked cold, gives what the step wants, it
// is not to blame: there are too few who ask.
bool waits_for_disk(const Figures& figures, const Circumstances& now, const Stages& stages) {
  if (figures.host.asleep() < limits::mostly_blocked * figures.host.wall) return false;
  const double target = stages.others_than_host();
  const double wanted = figures.storage.batch_bytes / std::max(target, 1e-9);
  const bool enough = figures.storage.rate_of_four > 0 &&
                      limits::room_for_workers * figures.storage.rate_of_four >= wanted;
  return !enough || now.config.data.num_workers >= workers_needed(figures, target);
}

Diagnosis slow_storage(const Figures& figures, const Circumstances& now, const Stages& stages) {
  Diagnosis found{.verdict = Bottleneck::slow_storage};
  const double blocked = figures.host.asleep() / figures.host.wall;
  found.evidence.push_back(
      {"blocked_share", blocked,
       fmt::format("the reading threads sleep {} of their time ({} of {} a batch)",
                   percent(blocked), milliseconds(figures.host.asleep()),
                   milliseconds(figures.host.wall))});
  const StorageFigures& storage = figures.storage;
  if (storage.rate > 0)
    found.evidence.push_back(
        {"storage_bytes_per_second", storage.rate,
         fmt::format("the dataset's files come at {:.1f} MB/s from the disk; the step wants "
                     "{:.1f} MB/s",
                     storage.rate / 1e6, storage.batch_bytes / std::max(stages.step, 1e-9) / 1e6)});
  const bool saturated =
      storage.rate > 0 && storage.rate_of_four < limits::readers_scale * storage.rate;
  const int64_t needed = workers_needed(figures, stages.others_than_host());
  if (!saturated && needed > now.config.data.num_workers) {
    found.remedy = more_workers(needed, "more readers wait at the same time");
    const double batch = figures.host.wall / static_cast<double>(needed);
    found.expected_gain = gain_of(figures, std::max(batch, stages.others_than_host()));
  } else {
    // Mels are read instead of sound: as many bytes as they are moved in.
    const double share =
        storage.batch_bytes > 0 ? std::min(1.0, figures.batch_bytes / storage.batch_bytes) : 1;
    const double others = stages.others_than_host();
    found.remedy = nothing_to_decode(
        now, fmt::format("mels are {} of the bytes, in one file", percent(share)));
    found.expected_gain = gain_of(figures, std::max(share * stages.host, others));
    if (found.remedy.empty() || share > limits::keeps_up) {
      found.remedy = look_at_data(now, "shows the disk; a copy of the data on a faster one helps");
      found.expected_gain = gain_of(figures, others);
    }
  }
  return found;
}

// Too few threads, too many, or too much work for the cores.
Diagnosis host_bound(const Figures& figures, const Circumstances& now, const Stages& stages) {
  const int64_t workers = now.config.data.num_workers;
  const double target = stages.others_than_host();
  const double cores = figures.host.on_core / std::max(target, 1e-9);  // kept busy by the work
  const double there = limits::cores_for_workers * figures.cores;
  const int64_t needed = workers_needed(figures, target);
  const double in_line = figures.host.in_line / figures.host.wall;
  Diagnosis found;
  found.evidence = {
      {"host_seconds_per_batch", figures.host.wall,
       fmt::format("reading and decoding a batch takes {} of a thread, {} with {} threads",
                   milliseconds(figures.host.wall), milliseconds(stages.host), workers)},
      {"cores_needed", cores,
       fmt::format("to keep up it needs {:.1f} cores of {}", cores, figures.cores)}};
  if (workers > 2 * figures.cores && in_line >= limits::standing_in_line &&
      cores <= limits::keeps_up * figures.cores) {
    found.verdict = Bottleneck::too_many_workers;
    found.evidence.push_back(
        {"in_line_share", in_line,
         fmt::format("the threads stand in line for a core {} of their time", percent(in_line))});
    found.remedy = more_workers(std::max(1, figures.cores), "a thread a core");
    found.expected_gain = in_line * wait_share(figures);
  } else if (cores <= there && workers < needed) {
    found.verdict = Bottleneck::too_few_workers;
    found.remedy = more_workers(needed, "so many keep up with the step, with some room");
    const double batch = figures.host.wall / static_cast<double>(needed);
    found.expected_gain = gain_of(figures, std::max(batch, target));
  } else {
    found.verdict = Bottleneck::decode_bound;
    // All cores at it, or what the rest takes.
    const double best = std::max(target, figures.host.on_core / figures.cores);
    if (!now.config.data.use_native_loading) {
      found.remedy = {.settings = {"data.use_native_loading=true"},
                      .why = "the native reader takes a fraction of the general decoder's time"};
      found.expected_gain = gain_of(figures, target);
    } else if (workers < figures.cores && gain_of(figures, best) >= limits::worth_changing) {
      found.remedy = more_workers(figures.cores, "every core decodes");
      found.expected_gain = gain_of(figures, best);
    } else {
      found.remedy = nothing_to_decode(now, "what is cached is not decoded again");
      if (found.remedy.empty())
        found.remedy = look_at_data(now, "shows the formats; WAV files need next to no decoding");
      found.expected_gain = gain_of(figures, target);
    }
  }
  return found;
}

// One GPU prepares and trains, and another one does nothing.
bool another_gpu_may_prepare(const Circumstances& now) {
  return now.data_on_model && now.visible_gpus > 1 && now.strategy == StrategyKind::one_device;
}

Remedy less_preparation(const Circumstances& now) {
  Remedy remedy = cached_features(now, "what is cached needs no preparation");
  if (remedy.empty())
    remedy = {.command = {"profile", "--num-steps", "20"},
              .why = "shows what of the preparation takes the time"};
  return remedy;
}

Diagnosis data_device(const Figures& figures, const Circumstances& now, const Stages& stages) {
  Diagnosis found{.verdict = Bottleneck::data_device_bound};
  found.evidence.push_back({"prepare_seconds_per_batch", figures.prepare,
                            fmt::format("preparing a batch takes {} on the data device, a step {}",
                                        milliseconds(figures.prepare), milliseconds(stages.step))});
  const double others = std::max({stages.host, stages.move, stages.step});
  const double turns = stages.step + figures.prepare_on_model;
  if (another_gpu_may_prepare(now)) {
    found.remedy = {.settings = {"data.data_gpu=0", "data.model_gpu=1"},
                    .why = "a GPU of its own prepares while the other trains"};
    found.expected_gain = gain_of(figures, std::max(others, figures.prepare));
  } else if (!now.data_on_model && figures.prepare_on_model > 0 &&
             gain_of(figures, turns) >= limits::worth_changing) {
    found.evidence.push_back(
        {"prepare_on_model_seconds_per_batch", figures.prepare_on_model,
         fmt::format("the model's device would take {}", milliseconds(figures.prepare_on_model))});
    found.remedy = {.settings = {"data.data_gpu=null", "data.model_gpu=null",
                                 fmt::format("training.visible_gpus={}",
                                             now.config.data.model_gpu.value_or("0"))},
                    .why = "the model's device prepares its batches faster than the data device"};
    found.expected_gain = gain_of(figures, turns);
  } else {
    found.remedy = less_preparation(now);
    found.expected_gain = gain_of(figures, others);
  }
  return found;
}

Remedy faster_copies(const Circumstances& now) {
  const DataConfig& data = now.config.data;
  if (!data.pin_memory)
    return {.settings = {"data.pin_memory=true"}, .why = "page-locked memory is copied directly"};
  if (!data.prefetch_to_gpu)
    return {.settings = {"data.prefetch_to_gpu=true"}, .why = "batches are copied ahead of time"};
  if (!data.optimize_cpu_gpu_overlap)
    return {.settings = {"data.optimize_cpu_gpu_overlap=true"},
            .why = "copies run beside the step, not in its stream"};
  return {.settings = {"data.data_gpu=null", "data.model_gpu=null",
                       fmt::format("training.visible_gpus={}", data.model_gpu.value_or("0"))},
          .why = "batches that are prepared where the model is are not copied"};
}

Diagnosis transfer(const Figures& figures, const Circumstances& now, const Stages& stages) {
  Diagnosis found{.verdict = Bottleneck::transfer_bound};
  found.evidence.push_back(
      {"transfer_bytes_per_second", figures.batch_bytes / std::max(figures.move, 1e-9),
       fmt::format("a batch of {:.1f} MB takes {} to the model's device ({:.2f} GB/s), a step {}",
                   figures.batch_bytes / 1e6, milliseconds(figures.move),
                   figures.batch_bytes / std::max(figures.move, 1e-9) / 1e9,
                   milliseconds(stages.step))});
  found.remedy = faster_copies(now);
  const double beside = copies_on_demand(now) ? figures.move : 0;  // no longer in turn
  found.expected_gain =
      gain_of(figures, std::max({stages.host, stages.prepare, stages.step, beside}));
  return found;
}

Diagnosis short_queue(const Figures& figures, const Circumstances& now, const Stages& stages) {
  Diagnosis found{.verdict = Bottleneck::queue_too_small, .expected_gain = wait_share(figures)};
  found.evidence.push_back(
      {"queue_capacity", static_cast<double>(now.queue_capacity),
       fmt::format("the queue holds {} batches; stages take {}, {} and {} a batch, a step {}",
                   now.queue_capacity, milliseconds(stages.host), milliseconds(stages.prepare),
                   milliseconds(stages.move), milliseconds(stages.step))});
  found.evidence.push_back(
      {"step_p99", figures.fed.p99,
       fmt::format("one step in a hundred takes {}, the middle one {}",
                   milliseconds(figures.fed.p99), milliseconds(figures.fed.median))});
  const DataConfig& data = now.config.data;
  if (static_cast<int>(now.queue_capacity) < limits::short_queue) {
    found.remedy = {.settings = {fmt::format("data.buffer_size={}", limits::usual_queue)},
                    .why = "a longer queue hides a batch that comes late"};
  } else if (!data.enhanced_gpu_prefetch) {
    found.remedy = {.settings = {"data.enhanced_gpu_prefetch=true"},
                    .why = "the queues then grow with the jitter they see"};
  } else {
    found.remedy = {.settings = {fmt::format("data.buffer_size={}", 2 * data.buffer_size),
                                 fmt::format("data.prefetch_factor={}", 2 * data.prefetch_factor)},
                    .why = "longer queues hide a batch that comes late"};
  }
  return found;
}

// A run's record has no stages: the queues tell between which two the batches run out.
Diagnosis recorded_stage(const Figures& figures, const Circumstances& now) {
  const auto ready = [&](const char* name) {
    const QueueFigures* queue = figures.queue(name);
    return queue ? queue->ready : 1.0;
  };
  const DataConfig& data = now.config.data;
  Diagnosis found{.expected_gain = wait_share(figures)};
  if (figures.queues.empty() || ready("loaded") < limits::queue_starves) {
    if (data.num_workers < static_cast<int64_t>(limits::cores_for_workers * figures.cores)) {
      found.verdict = Bottleneck::too_few_workers;
      found.remedy = more_workers(std::min<int64_t>(figures.cores, 2 * data.num_workers),
                                  "the host's queue runs empty while cores are free");
    } else {
      found.verdict = Bottleneck::decode_bound;
      found.remedy = data.use_native_loading
                         ? nothing_to_decode(now, "what is cached is not decoded again")
                         : Remedy{.settings = {"data.use_native_loading=true"},
                                  .why = "the native reader is faster than the general decoder"};
      if (found.remedy.empty())
        found.remedy = look_at_data(now, "shows the formats and how fast the disk is");
    }
  } else if (ready("prepared") < limits::queue_starves) {
    found.verdict = Bottleneck::data_device_bound;
    found.remedy = another_gpu_may_prepare(now)
                       ? Remedy{.settings = {"data.data_gpu=0", "data.model_gpu=1"},
                                .why = "a GPU of its own prepares while the other trains"}
                       : less_preparation(now);
  } else if (!now.data_on_model && ready("moved") < limits::queue_starves) {
    found.verdict = Bottleneck::transfer_bound;
    found.remedy = faster_copies(now);
  } else {
    found = short_queue(figures, now, {.step = figures.fed.median});
  }
  return found;
}

}  // namespace

Found starving(const Figures& figures, const Circumstances& now) {
  if (figures.fed.count == 0 || wait_share(figures) < limits::worth_changing) return std::nullopt;
  Diagnosis found;
  const Stages stages = stages_of(figures, now);
  const double slowest = std::max({stages.host, stages.prepare, stages.move});
  if (figures.recorded) {
    found = recorded_stage(figures, now);
  } else if (slowest < limits::keeps_up * stages.step) {
    // A queue that was not empty did not keep anybody waiting.
    const QueueFigures* read = figures.queue("moved");
    if (read && 1 - read->ready < 0.5 * wait_share(figures)) return std::nullopt;
    if (disturbed(figures)) return std::nullopt;
    found = short_queue(figures, now, stages);
  } else if (slowest == stages.move) {
    found = transfer(figures, now, stages);
  } else if (slowest == stages.prepare) {
    found = data_device(figures, now, stages);
  } else if (waits_for_disk(figures, now, stages)) {
    found = slow_storage(figures, now, stages);
  } else {
    found = host_bound(figures, now, stages);
  }
  prove(found, figures);
  return found;
}

Found slowed(const Figures& figures, const Circumstances& now) {
  if (figures.recorded || figures.replay.count == 0 || figures.fed.count == 0) return std::nullopt;
  const double longer = figures.fed.median / std::max(figures.replay.median, 1e-9) - 1;
  const double unexplained = figures.fed.median - figures.replay.median - lost_wait(figures) -
                             figures.captures * figures.capture_cost;
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
