// Reading MP3 (and MPEG layers I and II) through libmpg123. Not through libsndfile, which uses the
// same library: it takes an estimate for the length, wrong by more than half for a variable bit
// rate, seeks without the frames a frame builds on, and lets warnings go to standard error.
#pragma once

#include <memory>

#include "audio/file/audio_file.h"
#include "audio/file/byte_source.h"

namespace tandem {

// Nothing when there are no MPEG frames (ID3 tags also stand before FLAC and AAC). Throws any
// AudioError but missing.
std::unique_ptr<AudioFile> open_mpeg(std::shared_ptr<ByteSource> source, const AudioLimits& limits);

}  // namespace tandem
