#include "generate/music_windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/musicgen/delay_pattern.h"
#include "tandem/error.h"

namespace tandem {
namespace {

int64_t frames_of(const MusicDecoderSize& size, int64_t columns_behind_start) {
  return DelayPattern{.codebooks = size.codebooks,
                      .channels = size.channels,
                      .pad_token = size.pad_token,
                      .columns = 1 + columns_behind_start}
      .frames();
}

}  // namespace

std::vector<MusicWindow> music_windows(const MusicDecoderSize& size, const MusicOptions& options,
                                       int64_t prompt_frames) {
  if (options.new_tokens < 1)
    throw Error(ErrorKind::config,
                fmt::format("{} new tokens; expected 1 or more", options.new_tokens));
  const int64_t longest = std::min(options.window_tokens, size.positions - 1);
  const int64_t whole = prompt_frames + options.new_tokens;
  if (whole <= longest)
    return {{.prompt_frames = prompt_frames,
             .new_tokens = options.new_tokens,
             .frames = frames_of(size, whole)}};
  const int64_t delay = size.codebooks_a_channel() - 1, kept = options.kept_tokens;
  if (kept <= delay || kept + delay >= longest) {
    throw Error(ErrorKind::config,
                fmt::format("kept_tokens is {}; windows of {} tokens can keep {} to {}", kept,
                            longest, delay + 1, longest - delay - 1));
  }
  if (options.new_tokens <= delay) {
    throw Error(ErrorKind::config,
                fmt::format("{} new tokens add no frame to a prompt of {}; expected more than {}",
                            options.new_tokens, prompt_frames, delay));
  }
  const int64_t frames = frames_of(size, whole);
  std::vector<MusicWindow> windows;
  int64_t known = prompt_frames, step = 0;
  while (known < frames) {
    MusicWindow window;
    window.prompt_frames = std::min(known, kept);
    window.first_frame = known - window.prompt_frames;
    window.new_tokens = std::min(longest - window.prompt_frames, frames - known + delay);
    window.first_step = step;
    window.frames = window.prompt_frames + window.new_tokens - delay;
    known = window.first_frame + window.frames;
    step += window.new_tokens;
    windows.push_back(window);
  }
  return windows;
}

}  // namespace tandem
