#include "data/corpus/clip_sound.h"

#include <fmt/format.h>

#include "util/text.h"

namespace tandem {

std::unique_ptr<AudioFile> open_clip(const ClipIndex& index, int64_t row, bool native) {
  const ClipView clip = index[row];
  OpenOptions options{.native = native};
  constexpr double two_days = 48 * 3600;  // recordings that clips are cut from may be long
  if (clip.part) options.limits.max_seconds = two_days;
  const std::string path = index.full_path(row);
  auto file = open_audio(
      {.path = path, .offset = clip.offset, .size = clip.offset ? clip.bytes : -1}, options);
  const AudioInfo& info = file->info();
  const bool fits =
      clip.part ? clip.first_frame + clip.frames <= info.frames : clip.frames == info.frames;
  if (!fits || info.sample_rate != clip.sample_rate) {
    throw AudioError(AudioFault::changed,
                     fmt::format("`{}` has {} frames of {} Hz; the index says {} of {} Hz", path,
                                 info.frames, info.sample_rate, clip.frames, clip.sample_rate));
  }
  return file;
}

bool is_plain_wav(const std::string& path) { return lower(path).ends_with(".wav"); }

}  // namespace tandem
