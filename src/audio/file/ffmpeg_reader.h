// Reading through the `ffmpeg` program: MP4 and M4A, WebM, AAC, G.722 and what else it knows. The
// whole file is decoded when it is opened, since a part cannot be sought to the sample there.
#pragma once

#include <memory>
#include <string>

#include "audio/file/audio_file.h"
#include "audio/file/byte_source.h"
#include "audio/file/content.h"

namespace tandem {

struct FfmpegOptions {
  AudioLimits limits = {};
  std::string program = "ffmpeg";
  double seconds_allowed = 0;  // to decode; 0: in proportion to limits.max_seconds
};

// Throws any AudioError; without the program not_audio, with a hint to install it.
std::unique_ptr<AudioFile> open_with_ffmpeg(const FileSlice& source, const Content& content,
                                            const FfmpegOptions& options);

}  // namespace tandem
