#include "data/feed/clip_shape.h"

#include <ATen/ATen.h>

#include "audio/signal/loudness.h"
#include "audio/signal/resample.h"
#include "audio/signal/trim.h"
#include "data/corpus/clip_sound.h"

namespace tandem {

ShapedClip shape_clip(std::vector<float>& raw, int rate, std::vector<float>& resampled,
                      const SpeechOptions& options) {
  ShapedClip clip{raw.data(), static_cast<int64_t>(raw.size())};
  if (rate != options.sample_rate) {
    resampled.resize(static_cast<size_t>(resampled_length(clip.count, rate, options.sample_rate)));
    resample_clip(raw.data(), clip.count, rate, options.sample_rate, resampled.data());
    clip = {resampled.data(), static_cast<int64_t>(resampled.size())};
  }
  if (options.trim_top_db) {
    const Span sound = find_sound(clip.samples, clip.count, {.top_db = *options.trim_top_db});
    if (sound.end > sound.begin) clip = {clip.samples + sound.begin, sound.end - sound.begin};
  }
  if (options.target_lufs) {
    const auto gain = static_cast<float>(gain_of_clip(clip.samples, clip.count, options.sample_rate,
                                                      *options.target_lufs, loudest_peak));
    for (int64_t i = 0; i < clip.count; ++i) clip.samples[i] *= gain;
  }
  return clip;
}

Waves read_clip(const ClipIndex& index, int64_t row, const SpeechOptions& options) {
  const ClipView clip = index[row];
  thread_local std::vector<float> raw, resampled;
  raw.resize(static_cast<size_t>(clip.frames));
  open_clip(index, row, options.native)->read_mono(clip.first_frame, clip.frames, raw.data());
  const ShapedClip shaped = shape_clip(raw, clip.sample_rate, resampled, options);
  const at::Tensor samples = at::from_blob(shaped.samples, {1, shaped.count}, at::kFloat).clone();
  return {samples, {shaped.count}, options.sample_rate};
}

}  // namespace tandem
