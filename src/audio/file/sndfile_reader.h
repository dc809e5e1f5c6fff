// Reading through libsndfile: FLAC, OGG Vorbis, Opus, AIFF and the odder WAV files. A part is
// sought, but where libsndfile's seeks miss (OGG, ADPCM, GSM): there all before it is decoded too.
#pragma once

#include <memory>

#include "audio/file/audio_file.h"
#include "audio/file/byte_source.h"

namespace tandem {

// Nothing when libsndfile does not know the bytes. Throws
// AudioError(bad_channels | bad_rate | empty | too_long | truncated | unreadable).
std::unique_ptr<AudioFile> open_with_sndfile(const std::shared_ptr<ByteSource>& source,
                                             const AudioLimits& limits);

}  // namespace tandem
