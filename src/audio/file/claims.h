// What every reader checks of what a file claims, before it takes memory, and the sentences they
// share. All throw AudioError but where said.
#pragma once

#include <cstdint>
#include <string>

#include "audio/file/audio_file.h"

namespace tandem {

void check_format(int64_t channels, int64_t sample_rate, const std::string& name,
                  const AudioLimits& limits);
void check_length(const AudioInfo& info, const std::string& name, const AudioLimits& limits);

// A part that is not within the file is our own mistake: Error(internal).
void check_part(const AudioInfo& info, int64_t first, int64_t count, const std::string& name);

[[noreturn]] void throw_cut_short(const std::string& name, int64_t frame, int64_t frames);
[[noreturn]] void throw_not_finite(const std::string& name, int64_t first, int64_t count);

}  // namespace tandem
