// Many captions to a folder of clips, on all devices at once. No clip is lost, made twice or
// changed by how the work was split, resumed or shared among jobs.
//
// A rerun makes what is missing, failed or changed: a clip counts as done when the manifest has its
// recipe (caption, seed, options, model) and its file has the size and sum written there. Several
// jobs may share a folder when all are given the same number of shards; the one that finds all
// clips there writes manifest.jsonl and metadata.csv.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "generate/captions.h"
#include "generate/music_engine.h"

namespace tandem {

struct MusicJobProgress {
  int64_t total = 0, done = 0, skipped = 0, failed = 0;  // clips; done counts all three
  int64_t clipped = 0;                           // clips of this run that 16 bits could not hold
  double sound_seconds = 0, device_seconds = 0;  // of this run
  double seconds = 0;                            // since it began
  double waited_for_captions = 0;                // seconds devices stood without prepared clips
  double waited_for_disk = 0;                    // seconds engines waited for the writers
  struct Device {
    int64_t clips = 0;
    double busy_seconds = 0;
    double busy_share = 0;  // of `seconds`
    bool lost = false;
  };
  std::vector<Device> devices;
  bool merged = false;  // at the end: manifest.jsonl and metadata.csv are written
};

struct MusicJobOptions {
  std::string folder;  // <data_dir>/<model>/<run_id>
  MusicOptions music;
  uint64_t seed = 0;              // a clip's own seed comes from this and its name
  int64_t batch_size = 0;         // over all devices; remainder to the last; at least one each
  std::string split = "queue";    // "queue" | "batch"
  int64_t shard = 0, shards = 1;  // this job makes rows with (place mod shards) == shard
  std::string format = "wav";     // wav (float32), wav16, flac
  int64_t writers = 2;
  int64_t workers = 2;   // threads that prepare captions and check what is done
  int64_t prefetch = 2;  // total batches they prepare ahead
  std::string recipe;    // names all else that decides the sound: model, precision
  // The three from this thread, `note` from any (one at a time).
  std::function<void(const MusicJobProgress&)> on_progress = {};  // every now and then
  std::function<void(const std::string&)> note = {};  // a sentence for the user, as it happens
  std::function<bool()> stop = [] { return false; };
};

struct MusicPool {
  std::vector<LogicalDevice*> devices;
  // Makes an engine for a device, on the device's own thread.
  std::function<std::unique_ptr<MusicEngine>(LogicalDevice&)> make_engine;
  // Ids of a caption (thread-safe).
  std::function<std::vector<int64_t>(const std::string&)> text_ids;
  // [K, P] (thread-safe); may be empty, then captions with an audio prompt fail.
  std::function<at::Tensor(const std::string& audio_path)> prompt_codes;
  int64_t rate = 32000;
};

// Writes audio_samples/, metadata.csv and manifest.jsonl. Throws Error(io) when the folder cannot
// be written or another run holds it, Error(device) when no device is left, Error(interrupted)
// after `stop`, Error(usage) for options that cannot be; what is done stays done.
MusicJobProgress generate_clips(MusicPool& pool, const Captions& captions,
                                const MusicJobOptions& options);

// The seed of one clip; below 2^53, so that any JSON reader keeps it whole.
uint64_t clip_seed(uint64_t seed, const std::string& name);

}  // namespace tandem
