// The profile of making music on this machine's devices: real batches of real captions, thrown away
// afterwards. A "step" is one batch of clips on one device.
//
//   Profile profile = profile_generation({.model = model, .devices = devices, …}, {.steps = 5});
//
// Sections follow each other: batches one at a time, whose parts are timed and add up; the same,
// shorter, with operations and kernels traced; batches that follow each other as in a run, where
// sound is made beside the next one's decoding; what the profiling costs; and on a GPU one batch
// whose steps are not captured, which tells how much work each kernel is.
#pragma once

#include <functional>
#include <vector>

#include "generate/clip_writer.h"
#include "generate/music_engine.h"
#include "observe/profile.h"

namespace tandem {

struct MusicProfileTask {
  const Musicgen& model;
  std::vector<LogicalDevice*> devices;
  std::vector<int64_t> shares;  // clips of a batch, by device
  MusicEngineOptions engine;
  MusicOptions music;
  // Clip number `clip` of all, counted over batches and devices. From several threads.
  std::function<MusicRequest(int64_t clip)> request;
  ClipFormat format;
};

// Clips whose kernels and operations are traced have this many new tokens at most: those of a long
// clip fill the driver's buffers.
constexpr int64_t most_traced_tokens = 512;

// Throws Error as generating does; Error(memory) when the batch does not fit.
Profile profile_generation(const MusicProfileTask& task, const ProfileOptions& options);

}  // namespace tandem
