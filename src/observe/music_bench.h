// How fast a MusicGen model of a given size makes clips on one device, with random weights (they do
// not change the speed).
//
// `step_seconds` is the device's own time of the whole decode loop over its number of steps, from
// the first position to the last: a step's cost grows with its position, so a few steps would not
// tell. `whole_seconds` is the time from one batch's last file to the next batch's last file while
// batches follow each other: captions, decoding, EnCodec and writing, as a long run has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/step_paths.h"

namespace tandem {

class LogicalDevice;

struct MusicBenchOptions {
  std::string size = "small";
  std::vector<int64_t> batches = {1, 8, 32};
  int64_t steps = 1500;       // columns drawn
  int64_t text_tokens = 128;  // of every caption
  int64_t whole_batches = 0;  // timed with EnCodec and writing; 0: the decode loop alone
  std::string precision = "auto", cache = "same";
  double bandwidth = 4.3e12;  // bytes a second the floor is reckoned with (H200, measured copy)
};

struct MusicBatchBench {
  int64_t batch = 1;
  bool fits = true;                               // false: out of memory, and the rest is 0
  double step_seconds = 0, clips_per_second = 0;  // of the decode loop
  double floor = 0;                               // seconds a step
  double decode_seconds = 0, whole_seconds = 0;   // of a batch; the loop alone, and everything
  double sound_seconds = 0;                       // of a batch, EnCodec's own time
  double memory_bytes = 0;
  uint64_t captures = 0;
};

struct MusicBench {
  std::string device, precision;
  std::vector<MusicBatchBench> batches;
  std::vector<StepPath> paths;  // of one clip, where that is among the batches
};

MusicBench bench_music(LogicalDevice& device, const MusicBenchOptions& options);

// Seconds a step takes at least, on average over `steps`: every weight is read once, keys and
// values of all earlier positions once, those of the caption by the rows that read it, logits are
// written and read.
double music_step_floor(const MusicBenchOptions& options, int64_t batch);

}  // namespace tandem
