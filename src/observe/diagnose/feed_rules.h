// What the rules about the feed have in common: the times of its stages, the verdicts about single
// stages, and the remedies they give. Private to the diagnosis.
#pragma once

#include <algorithm>
#include <string>

#include "observe/diagnose/rules.h"

namespace tandem::rules {

// Seconds a batch, as far as each stage can overlap the others.
struct Stages {
  double host = 0, prepare = 0, move = 0, step = 0;
  double others_than_host() const { return std::max({prepare, move, step}); }
};

Stages stages_of(const Figures& figures, const Circumstances& now);
// Whether a batch is copied to the model only when a step asks for it.
bool copies_on_demand(const Circumstances& now);
// The time of a step once a batch comes every `batch` seconds, against the step as it is.
double gain_of(const Figures& figures, double batch);
Evidence headspace(const Figures& figures);

// Readers that sleep wait for the disk. Where the disk, asked cold, gives what the step wants, it
// is not to blame: there are too few who ask.
bool waits_for_disk(const Figures& figures, const Circumstances& now, const Stages& stages);
Diagnosis slow_storage(const Figures& figures, const Circumstances& now, const Stages& stages);
// Too few threads, too many, or too much work for the cores.
Diagnosis host_bound(const Figures& figures, const Circumstances& now, const Stages& stages);
Diagnosis data_device(const Figures& figures, const Circumstances& now, const Stages& stages);
Diagnosis transfer(const Figures& figures, const Circumstances& now, const Stages& stages);
Diagnosis short_queue(const Figures& figures, const Circumstances& now, const Stages& stages);

// Features that are made once instead of every epoch, where the stage reads such; else empty. What
// is changed at random each time cannot be kept.
Remedy cached_features(const Circumstances& now, const std::string& why);
// The GPT hears its clips all the same: its cache saves the preparation alone.
Remedy nothing_to_decode(const Circumstances& now, const std::string& why);
Remedy kept_sound(const Circumstances& now);  // empty: as much as fits is kept already
// The first of these that there is, else a look at the data.
Remedy less_decoding(const Circumstances& now, const std::string& what_data_shows);
Remedy look_at_data(const Circumstances& now, const std::string& why);
// Workers that read and decode a batch in the time the rest takes, with some room.
int64_t workers_needed(const Figures& figures, double target);
Remedy more_workers(int64_t workers, const std::string& why);
// One GPU prepares and trains, and another one does nothing.
bool another_gpu_may_prepare(const Circumstances& now);
Remedy less_preparation(const Circumstances& now);
Remedy faster_copies(const Circumstances& now);

}  // namespace tandem::rules
