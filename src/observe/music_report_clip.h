// One clip of a report: its spectrogram and its sound in a form every browser plays.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tandem {

struct ClipLook {
  double seconds = 0;
  int channels = 1, rate = 0;
  std::string png;    // of the mean over the channels
  std::string bytes;  // the file, or 16-bit WAV of a file of floats
  std::string type;   // "audio/wav", "audio/flac"
};

// Nothing when the file is not there or holds no sound that can be read.
std::optional<ClipLook> look_at_clip(const std::filesystem::path& file);

// 32-bit float WAV to 16-bit WAV; nothing when the bytes are no such file.
std::optional<std::string> to_wav16(const std::string& bytes);

}  // namespace tandem
