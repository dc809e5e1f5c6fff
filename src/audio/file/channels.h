// A whole file of sound with its channels kept apart. NaN and infinite samples are handed over as
// they are, for those who count them.
#pragma once

#include <string>
#include <vector>

#include "audio/file/audio_file.h"

namespace tandem {

struct ChannelSound {
  AudioInfo info;
  std::vector<std::vector<float>> channels;  // each of info.frames samples
};

// What libsndfile does not read (MP3, what ffmpeg decodes) comes as one channel, the mean of all.
// Throws AudioError.
ChannelSound read_channels(const std::string& path, const OpenOptions& options = {});

}  // namespace tandem
