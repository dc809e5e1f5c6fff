#include "train/batches/voice_sound.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/corpus/clip_sound.h"
#include "tandem/config.h"
#include "util/text.h"

namespace tandem {

SpeechOptions voice_sound(const DataConfig& config, uint64_t seed, int second_rate) {
  const MelOptions mel = mel_xtts_dvae();
  return {.sample_rate = mel.sample_rate,
          .mel = mel,
          .trim_top_db = config.trim_top_db,
          .target_lufs = config.target_loudness_lufs,
          .noise_snr_db = config.noise_snr_db,
          .pitch_semitones = config.pitch_shift_semitones,
          .jitter_ms = config.start_jitter_ms,
          .waves = true,
          .second_rate = second_rate,
          .native = config.use_native_loading,
          .seed = seed};
}

ClipBounds voice_bounds(const XttsConfig& config) {
  return {.most_samples = config.gpt.max_new_codes() * config.code_stride,
          .most_tokens = config.gpt.max_text_tokens};
}

double seconds_of(const SpeechFeed& feed) {
  double sum = 0;
  for (const Bucket& bucket : feed.order.buckets())
    for (const int64_t clip : bucket.clips)
      sum += feed.corpus.lengths()[static_cast<size_t>(clip)].seconds;
  return sum;
}

std::string kept_sound_words(const SpeechFeed& feed) {
  const ClipIndex& index = feed.corpus.index();
  int64_t bytes = 0;  // four a sample; two are enough where a file has 16 bits
  for (const Bucket& bucket : feed.order.buckets())
    for (const int64_t clip : bucket.clips)
      if (!feed.batches.options().native || !is_plain_wav(index.full_path(clip)))
        bytes += index[clip].frames * static_cast<int64_t>(sizeof(float));
  if (bytes == 0) return "none: every clip is plain WAV";
  const int64_t room = feed.kept.most_bytes();
  if (room == 0) return "not kept: every epoch decodes";
  return fmt::format(
      "{} at most kept in memory{}", format_bytes(static_cast<uint64_t>(std::min(bytes, room))),
      bytes > room ? fmt::format(" of {}", format_bytes(static_cast<uint64_t>(bytes))) : "");
}

}  // namespace tandem
