// What the header of a WAV file says: how its samples are stored and where they lie. Takes RIFF,
// RF64 and BW64, chunks in any order and of odd size, and the sizes that programs leave behind when
// they write to a pipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "audio/file/byte_source.h"
#include "audio/file/samples.h"

namespace tandem {

struct WavLayout {
  StoredAs stored = StoredAs::other;
  int channels = 0;
  int64_t sample_rate = 0;
  int format_tag = 0;       // 1 PCM, 3 float, 6 A-law, 7 mu-law; others are other programs' work
  int64_t frame_bytes = 0;  // 0 when stored is `other`
  int64_t data_offset = 0;
  int64_t data_bytes = 0;  // that are there; never beyond the end of the source
  int64_t frames() const { return frame_bytes > 0 ? data_bytes / frame_bytes : 0; }
};

// True for bytes that begin as a WAV file does.
bool is_wav(std::span<const std::byte> head);

// `head` are the first bytes of `source`, read before; more is read only when the header is longer.
// Throws AudioError(not_audio | truncated).
WavLayout parse_wav(ByteSource& source, std::span<const std::byte> head);

}  // namespace tandem
