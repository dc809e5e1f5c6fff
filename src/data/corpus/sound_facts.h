// What is learned about one sound by opening and, unless asked not to, decoding it.
#pragma once

#include <cstdint>
#include <string>

#include "audio/file/audio_file.h"

namespace tandem {

struct SoundFacts {
  int64_t frames = 0;       // of the clip
  int64_t first_frame = 0;  // where it begins in its sound
  int32_t sample_rate = 0, channels = 0;
  bool part = false;     // of a longer sound
  bool decoded = false;  // what follows is known
  float peak = 0;        // 1: full scale
  float clipping = 0;    // share of samples in runs of three or more at full scale
  float silence = 0;     // share of 20 ms pieces 40 dB under the loudest, or under -60 dBFS
  float dc = 0;          // mean
  float rms = 0;         // dBFS of the whole clip
  float loudness = 0;    // dBFS of the pieces that are not silent
  uint64_t fingerprint = 0;
  std::string format = {};

  double seconds() const { return sample_rate > 0 ? static_cast<double>(frames) / sample_rate : 0; }
};

struct ListenOptions {
  bool decode = true;
  double decode_at_most = 3600;   // seconds; a clip longer than that is only measured
  double start = 0, seconds = 0;  // a part of the sound; 0: all of it
};

// Reads in pieces: memory grows by one number for each 20 ms. Throws AudioError.
SoundFacts listen(const AudioSource& source, const ListenOptions& options);

}  // namespace tandem
