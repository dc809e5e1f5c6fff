// What every music engine demands of a batch before it begins.
#pragma once

#include <cstdint>
#include <vector>

#include "generate/music_engine.h"
#include "models/musicgen/music_draw.h"
#include "models/musicgen/musicgen_config.h"

namespace tandem {

MusicDrawOptions draw_options_of(const MusicSampling& sampling);

// Frames of the batch's prompts, 0 without. Throws Error(config) for an option without meaning, and
// Error(data) with the clip's place for a caption that is too long or has unknown ids, and for
// prompts that do not fit the model or each other.
int64_t check_music_batch(const std::vector<MusicRequest>& batch, const MusicOptions& options,
                          const MusicgenConfig& config);

}  // namespace tandem
