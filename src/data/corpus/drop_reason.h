// Why a clip is not in the index.
#pragma once

#include "audio/file/audio_file.h"

namespace tandem {

enum class DropReason {
  none,
  bad_row,  // the dataset's row names no clip
  missing,
  unreadable,
  empty,
  not_audio,
  truncated,
  not_finite,
  bad_channels,
  bad_rate,
  too_short,
  too_long,
  no_text,
  text_too_long,
  unknown_tokens,
  duplicate,
  outlier,  // tokens a second far from the others'
  count
};
const char* to_string(DropReason reason);  // "missing", "text too long", ...
DropReason reason_of(AudioFault fault);
// Something is broken, as opposed to a clip that is whole but not wanted.
bool is_fault(DropReason reason);

}  // namespace tandem
