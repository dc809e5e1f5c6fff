// How far a folder of clips is from a folder of reference sounds: the Fréchet distance (FAD) on
// what EnCodec's encoder makes of them, frame by frame. The encoder is the checkpoint's own, so
// that nothing else is needed; figures compare among runs judged by the same codec, not with FAD on
// VGGish or CLAP.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/musicgen/encodec.h"

namespace tandem {

// The codec of a MusicGen folder with its encoder, without reading the rest of the model. On the
// device of the open DeviceScope. Throws what MusicgenFolder::open throws, and Error(corrupt) when
// the encoder is missing.
Encodec load_codec(const std::filesystem::path& model_folder);

struct FadOptions {
  int64_t subsets = 5;  // fewer where clips are few: at least two clips each
  uint64_t seed = 0;    // which clip falls in which subset
  std::function<void(int64_t done, int64_t total)> on_progress = {};  // sounds of both sides
  std::function<bool()> stop = [] { return false; };
};

struct FadReport {
  double score = 0;                   // all clips against all references
  std::vector<double> subset_scores;  // empty with fewer than four clips
  double mean = 0, deviation = 0;     // of those; of one alone: `score` and 0
  // One a clip: the distance of its mean feature, as a distribution without spread. NaN for a clip
  // that could not be read.
  std::vector<double> clip_scores;
  int64_t clips = 0, references = 0;              // that were read
  int64_t clip_frames = 0, reference_frames = 0;  // features of each side
  std::vector<std::string> unread;                // sentences
};

// Runs on the device of the open DeviceScope, where the codec must be. Throws Error(data) when one
// side has no sound that can be read, Error(interrupted) after `stop`.
FadReport measure_fad(const Encodec& codec, const std::vector<std::filesystem::path>& clips,
                      const std::vector<std::filesystem::path>& references,
                      const FadOptions& options = {});

}  // namespace tandem
