// Everything a diagnosis is made from: measured by `measure`, read from a run's files by
// `recorded_figures`, or made up in tests. What could not be known keeps its default, and no rule
// speaks of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/diagnose/series.h"
#include "tandem/config.h"
#include "tandem/devices.h"

namespace tandem {

// Seconds a thread spent: computing, standing in line for a core, asleep.
struct SpentTime {
  double wall = 0, on_core = 0, in_line = 0;
  double asleep() const { return wall - on_core - in_line > 0 ? wall - on_core - in_line : 0; }
};

struct QueueFigures {
  std::string name;                   // "loaded", "prepared", "moved"
  double ready = 1;                   // share of the time in which it was not empty
  double put_wait = 0, get_wait = 0;  // seconds a batch: for room, for a batch
};

struct DeviceFigures {
  std::string name;  // "/GPU:1"
  int index = 0;     // what the user calls it
  bool holds_model = false, prepares = false;
  bool real = false;             // a GPU or a share of one
  double own_step = 0;           // seconds, replaying a batch alone on it; 0: not measured
  SeriesFigures utilisation;     // 0 to 1
  uint64_t peak = 0, limit = 0;  // bytes; limit 0: none
  // Shares; -1: not known.
  double clock = -1;         // of the highest clock, mean
  double braked = -1;        // readings in which heat or a power brake held the clock down
  double power_capped = -1;  // readings at the power limit
  double clock_mhz = 0, highest_mhz = 0;   // the clock, mean; 0: not known
  std::vector<std::string> clock_reasons;  // what the driver gave for it in any reading
};

struct StorageFigures {
  double batch_bytes = 0;   // read for one batch
  double rate = 0;          // bytes a second, one reader, nothing of it in the page cache
  double rate_of_four = 0;  // the same with four readers at once
  int useful_readers = 0;   // so many are faster than a quarter of them, more are not; 0: not known
};

struct Figures {
  bool recorded = false;  // of a run's files: no replay, no stages
  int batches_a_step = 1;

  // Seconds a step.
  SeriesFigures replay;         // one batch again and again: nothing to wait for
  SeriesFigures fed;            // with the feed at work
  double wait = 0;              // of a fed step, for its batches; mean
  double first_batch = 0;       // seconds until the first batch was there
  double late_share = 0;        // batches that were still on their way when asked for
  double drift = 1;             // last third of the fed steps against the first, medians
  double unwatched_replay = 0;  // the same replay without eager debugging; 0: it is off

  // Stages, seconds a batch.
  SpentTime host;               // of the host threads, summed over the batch's tasks
  double prepare = 0;           // on the data device, alone
  double prepare_on_model = 0;  // the same work on the first model device; 0: not measured
  double move = 0;              // from the data device to the model's, alone
  double batch_bytes = 0;       // that are moved
  StorageFigures storage;
  std::vector<QueueFigures> queues;

  // The step, seen by the thread that launches it, in the replay; seconds a step. On a core: with
  // the threads that launch the backward pass, for which it waits meanwhile.
  SpentTime launch;
  double operations = 0;     // launched one by one
  double launch_cost = 0;    // seconds of the smallest operation there is
  double syncs = 0;          // operations of a step that wait for the device
  std::string sync_names;    // which
  bool queues_work = false;  // the device works while the host goes on: not so on the CPU
  double lateness = 0, replay_lateness = 0;  // seconds a step the launching thread stood in line
  double captures = 0;             // share of the steps, after the warm-up, that capture or will
  bool captures_end = false;       // fewer and fewer of them
  bool fed_is_settled = false;     // they are left out of `fed`
  double capture_cost = 0;         // seconds such a step takes longer
  int64_t parts = 1;               // a batch is worked on in, for lack of memory
  double low_precision_speed = 1;  // products in bf16 against float32 as it is set, TF32 or not

  std::vector<DeviceFigures> devices;
  int cores = 1;
  double core_load = -1;    // share of the cores this process used; -1: not known
  double others_load = -1;  // share of the cores that other programs used; -1: not known
  double rows = 0;          // clips (sequences) a batch; mean

  const QueueFigures* queue(const std::string& name) const {
    for (const QueueFigures& one : queues)
      if (one.name == name) return &one;
    return nullptr;
  }
};

// What is set now; rules speak of what can still be changed.
struct Circumstances {
  Config config;
  StrategyKind strategy = StrategyKind::cpu;
  int visible_gpus = 0;
  size_t queue_capacity = 0;
  bool data_on_model = false;    // one device prepares and trains
  bool takes_turns = false;      // and does one of them at a time
  std::string index;             // of the corpus, on disk; empty: none
  bool features_cached = false;  // mels (of the DVAE), codes (of the GPT) are kept beside it
  std::string dvae_file;         // that makes codes; empty: none
  bool decodes = false;          // there are files that are not plain WAV
};

}  // namespace tandem
