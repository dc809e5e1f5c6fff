#include "audio/file/claims.h"

#include <fmt/format.h>

namespace tandem {

void check_format(int64_t channels, int64_t sample_rate, const std::string& name,
                  const AudioLimits& limits) {
  if (channels < 1 || channels > limits.max_channels) {
    throw AudioError(AudioFault::bad_channels,
                     fmt::format("{} has {} channels, 1 to {} can be read", name, channels,
                                 limits.max_channels));
  }
  if (sample_rate < limits.min_rate || sample_rate > limits.max_rate) {
    throw AudioError(AudioFault::bad_rate,
                     fmt::format("{} has {} samples a second, {} to {} can be read", name,
                                 sample_rate, limits.min_rate, limits.max_rate));
  }
}

void check_length(const AudioInfo& info, const std::string& name, const AudioLimits& limits) {
  if (info.frames <= 0) {
    throw AudioError(AudioFault::empty, name + " is empty: it has a header and no samples");
  }
  if (info.seconds() > limits.max_seconds) {
    throw AudioError(AudioFault::too_long,
                     fmt::format("{} is {:.0f} seconds long, at most {:.0f} are allowed", name,
                                 info.seconds(), limits.max_seconds));
  }
}

void check_part(const AudioInfo& info, int64_t first, int64_t count, const std::string& name) {
  if (first >= 0 && count >= 0 && first <= info.frames && count <= info.frames - first) return;
  throw Error(ErrorKind::internal, fmt::format("{} frames from {} of {} were asked for, it has {}",
                                               count, first, name, info.frames));
}

void throw_cut_short(const std::string& name, int64_t frame, int64_t frames) {
  throw AudioError(AudioFault::truncated,
                   fmt::format("{} ends at frame {} of {}", name, frame, frames));
}

void throw_not_finite(const std::string& name, int64_t first, int64_t count) {
  throw AudioError(AudioFault::not_finite,
                   fmt::format("{} has samples that are no numbers (NaN or infinite) within {} "
                               "frames from {}",
                               name, count, first));
}

}  // namespace tandem
