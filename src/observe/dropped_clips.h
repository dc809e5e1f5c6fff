// A temporary folder that clips are written to so that the writing can be timed; removed with the
// object, and nobody looks for them. Clips of one place take each other's.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "generate/clip_writer.h"
#include "generate/music_engine.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {

class DroppedClips {
 public:
  explicit DroppedClips(ClipFormat format) : format_(std::move(format)) {
    const std::filesystem::path parent = std::filesystem::temp_directory_path();
    std::string pattern = (parent / "tandem-profile-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw Error(ErrorKind::io, "cannot make a folder in `" + parent.string() + "`");
    folder_ = pattern;
  }
  ~DroppedClips() { remove_tree(folder_); }
  DroppedClips(const DroppedClips&) = delete;
  DroppedClips& operator=(const DroppedClips&) = delete;

  // From several threads, each with a rank of its own.
  void write(size_t rank, size_t index, const MusicClip& clip) const {
    ClipEntry entry{.file = fmt::format("{}-{}{}", rank, index, format_.ending())};
    write_clip(folder_, format_, clip.sound, entry);
  }

 private:
  ClipFormat format_;
  std::filesystem::path folder_;
};

}  // namespace tandem
