// Rules about storage and the threads that read and decode.
#include <fmt/format.h>

#include <algorithm>

#include "data/feed/kept_sounds.h"
#include "observe/diagnose/feed_rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem::rules {

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
  int64_t readers = workers_needed(figures, stages.others_than_host());
  if (storage.useful_readers > 0) readers = std::min<int64_t>(readers, storage.useful_readers);
  if (const Remedy kept = kept_sound(now); now.decodes && !kept.empty()) {
    found.remedy = kept;
    found.expected_gain = gain_of(figures, stages.others_than_host());
  } else if (readers > now.config.data.num_workers) {
    found.remedy = more_workers(readers, "more readers wait at the same time");
    const double batch = figures.host.wall / static_cast<double>(readers);
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
    if (const int64_t kept = kept_sound_bytes(now.config.data.decoded_memory); kept > 0)
      found.evidence.push_back(
          {"decoded_memory_bytes", static_cast<double>(kept),
           fmt::format("this is a first epoch: later ones find up to {:.1f} GB of what was decoded "
                       "in memory",
                       static_cast<double>(kept) / 1e9)});
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
      found.remedy = less_decoding(now, "shows the formats; WAV files need next to no decoding");
      found.expected_gain = gain_of(figures, target);
    }
  }
  return found;
}

}  // namespace tandem::rules
