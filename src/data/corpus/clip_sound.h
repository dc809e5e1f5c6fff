// The sound behind a row of the index: a whole file, a member of a tar, or a part of a recording.
#pragma once

#include <memory>

#include "audio/file/audio_file.h"
#include "data/corpus/clip_index.h"

namespace tandem {

// The clip is frames [first_frame, first_frame + frames) of it. Throws AudioError, as `changed`
// when the sound is not as long or of another rate than the index says.
std::unique_ptr<AudioFile> open_clip(const ClipIndex& index, int64_t row, bool native = true);

// By its ending: nothing of it has to be decoded.
bool is_plain_wav(const std::string& path);

}  // namespace tandem
