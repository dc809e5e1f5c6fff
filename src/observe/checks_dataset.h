// A dataset before it is trained on: can it be read, what formats and rates it has, how much of it
// is broken. Sounds are opened, not decoded, and of a large dataset a sample spread over it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/checks.h"
#include "observe/checks_storage.h"

namespace tandem {

struct DatasetLimits {
  int64_t sample_rate = 22050;  // training's
  double warn_bad_share = 0.05, max_bad_share = 0.20;
  int64_t most_clips = 400;  // opened, as many as the seconds allow
  double most_seconds = 10;  // what ffmpeg has to open is decoded by that
  bool native = true;        // our own reader where it can
};

struct DatasetFacts {
  std::string why;  // why it was read as it was
  int64_t clips = 0, bad_rows = 0;
  int64_t opened = 0, broken = 0, native = 0, by_ffmpeg = 0;
  std::string example;                     // of what is broken, a sentence
  std::map<std::string, int64_t> formats;  // clips opened
  std::map<int, int64_t> rates;
  double seconds = 0;             // of the clips opened
  std::vector<FileRange> sounds;  // of the clips opened, to read them
};

// Throws Error(io), Error(data), Error(corrupt) for what is no dataset.
DatasetFacts look_at_dataset(const std::string& path, const DatasetLimits& limits);

// Layout and broken clips, formats, rates.
std::vector<Check> check_dataset(const DatasetFacts& facts, const DatasetLimits& limits);

// Everything about the data of a run: the above, the kind of disk and its speed. A path that is no
// dataset is a FAIL. `text` : a plain file of text, as the stage `bytes` reads it.
std::vector<Check> check_data(const std::string& path, bool text, const DatasetLimits& limits,
                              const ReadTrial& trial = {});

}  // namespace tandem
