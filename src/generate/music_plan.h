// What a run of text to audio will take, told before anything runs: the batch that fits, its bytes
// by part, steps, seconds and hours.
//
// Seconds follow from what a step must read and multiply and from how fast the device does both by
// its data sheet. They are for planning; what a run took stands in its summary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate/music_engine.h"
#include "models/musicgen/musicgen_config.h"

namespace tandem {

struct MusicPlanDevice {
  std::string name;         // "/GPU:0"
  std::string hardware;     // "NVIDIA H200"
  int64_t free_memory = 0;  // bytes; 0: not known
  bool gpu = false;         // a real one
  int64_t sharing = 1;      // devices on the same hardware: parts of a GPU, simulated GPUs
};

struct MusicPlanRequest {
  MusicgenConfig model;
  MusicEngineOptions engine;  // precision other than "auto"
  MusicOptions music;
  int64_t clips = 0;                       // that this job makes
  std::optional<int64_t> batch_size = {};  // over all devices; none: chosen
  std::vector<MusicPlanDevice> devices;    // one at least
};

struct MusicPlan {
  int64_t batch_size = 0;       // over all devices
  std::vector<int64_t> shares;  // of the devices
  MusicMemory memory;           // of the largest share
  int64_t free_memory = 0;      // of the device with the least; 0: not known
  int64_t windows = 1;          // of a clip
  int64_t steps = 0;            // of a batch
  int64_t batches = 0;          // of the device with the most
  double clip_seconds = 0;      // of sound
  double step_seconds = 0, batch_seconds = 0, seconds = 0;  // expected; the last for all clips
  bool speed_known = true;                                  // false: of hardware not in our table
  std::vector<std::string> notes;                           // sentences the user should read
  double free_share() const;                                // of the memory, 0 to 1
};

// Throws Error(memory) when not even one clip fits.
MusicPlan plan_music(const MusicPlanRequest& request);

// The most clips on one device that leave an eighth of `free_memory` free; 0: not even one.
int64_t clips_that_fit(const MusicPlanRequest& request, int64_t free_memory);

// Frames a clip of so many new tokens has, and the other way round.
int64_t frames_of_tokens(const MusicDecoderSize& size, int64_t tokens);
int64_t tokens_of_frames(const MusicDecoderSize& size, int64_t frames);

}  // namespace tandem
