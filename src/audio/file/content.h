// Which format bytes begin like, and so who reads them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tandem {

enum class Reader { none, wav, mpeg, sndfile, ffmpeg };

struct Content {
  Reader reader = Reader::none;
  const char* name = "";         // "flac", "mp4", ...
  bool ffmpeg_may_know = false;  // what the reader does not, of this format
};

// The bytes decide. The extension of `path` counts only for G.722, which has no mark of its own;
// anything else without a known mark is not audio: programs that guess read noise out of text.
Content recognise(std::span<const std::byte> head, const std::string& path);

}  // namespace tandem
