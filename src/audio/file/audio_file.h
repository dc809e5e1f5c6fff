// A file of sound, opened for reading parts of it as mono float samples. Four readers behind one
// face: our own for WAV (constant cost wherever the part lies), libsndfile for FLAC, OGG, Opus and
// AIFF, libmpg123 for MP3, the `ffmpeg` program for the rest.
//
// What a file claims is checked before memory is taken. Every failure is an AudioError, whose fault
// is the reason under which a run counts the file. One object serves one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/error.h"

namespace tandem {

enum class AudioFault {
  missing,     // no such file
  unreadable,  // there, but cannot be opened or read
  empty,       // no bytes, or no samples
  not_audio,   // bytes of no format we know
  truncated,   // fewer samples than it claims
  not_finite,  // NaN or infinite samples
  too_long,    // beyond AudioLimits
  bad_channels,
  bad_rate,
  too_short,  // below what the caller asked for; used by the data layer
  changed,    // not the file that was indexed; used by the data layer
};
const char* to_string(AudioFault fault);  // "missing", "not audio", ...

class AudioError : public Error {
 public:
  // missing and unreadable are Error(io), the others Error(data).
  AudioError(AudioFault fault, const std::string& sentence);
  AudioFault fault() const { return fault_; }

 private:
  AudioFault fault_;
};

struct AudioLimits {
  double max_seconds = 3600;
  int max_channels = 32;
  int min_rate = 1000, max_rate = 768000;
};

// A whole file, or `size` bytes of one from `offset` (a member of a tar).
struct AudioSource {
  std::string path;
  int64_t offset = 0;
  int64_t size = -1;  // to the end of the file
};

struct AudioInfo {
  int64_t frames = 0;
  int channels = 0;
  int sample_rate = 0;
  std::string format;   // "wav pcm16", "wav float32", "flac", "mp3", ...
  bool native = false;  // read by our own reader
  double seconds() const { return sample_rate > 0 ? static_cast<double>(frames) / sample_rate : 0; }
};

class AudioFile {
 public:
  virtual ~AudioFile() = default;
  const AudioInfo& info() const { return info_; }
  // Frames [first, first + count) as the mean over channels, into `out`. The part must lie within
  // the file. Throws AudioError(truncated | not_finite | unreadable).
  virtual void read_mono(int64_t first, int64_t count, float* out) = 0;

 protected:
  AudioInfo info_;
};

struct OpenOptions {
  bool native = true;  // false: libsndfile for WAV too (data.use_native_loading)
  AudioLimits limits = {};
};

// The content decides, not the extension.
std::unique_ptr<AudioFile> open_audio(const AudioSource& source, const OpenOptions& options = {});

}  // namespace tandem
