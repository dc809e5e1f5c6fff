// Our own reader of WAV files: a part costs one read of exactly its bytes, wherever it lies.
#pragma once

#include <memory>

#include "audio/file/audio_file.h"
#include "audio/file/byte_source.h"
#include "audio/file/wav_layout.h"

namespace tandem {

// `layout` as parse_wav found it, stored in a way we know. Throws AudioError(bad_channels |
// bad_rate | empty | too_long).
std::unique_ptr<AudioFile> open_wav(std::shared_ptr<ByteSource> source, const WavLayout& layout,
                                    const AudioLimits& limits);

}  // namespace tandem
