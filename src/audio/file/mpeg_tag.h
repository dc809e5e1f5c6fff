// What the first frame of an MP3 says about the whole: the Xing or Info tag.
#pragma once

#include <cstdint>
#include <optional>

#include "audio/file/byte_source.h"

namespace tandem {

struct MpegTag {
  bool tells_length = false;  // false also where there is no tag
  int64_t missing_bytes = 0;  // of those the tag promises
};

// Nothing when no frame of MPEG audio, layers I to III, stands at the start or after an ID3 tag.
std::optional<MpegTag> find_mpeg_tag(ByteSource& source);

}  // namespace tandem
