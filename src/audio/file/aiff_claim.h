// How many frames an AIFF file says it has, which libsndfile does not tell: it reads a file that
// was cut short as a shorter one.
#pragma once

#include <cstdint>

#include "audio/file/byte_source.h"

namespace tandem {

// Of the COMM chunk; 0 when there is none among the first chunks.
int64_t frames_claimed_by_aiff(ByteSource& source);

}  // namespace tandem
