// What helps a feed that is too slow.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/diagnose/feed_rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem::rules {

Remedy cached_features(const Circumstances& now, const std::string& why) {
  const DataConfig& data = now.config.data;
  if (now.features_cached || data.noise_snr_db || data.pitch_shift_semitones > 0 ||
      data.start_jitter_ms > 0)
    return {};
  // Of an index all that was said when it was made stays; made anew it would have to be said again.
  Remedy remedy{.command = {"prepare", now.index.empty() ? data_of(now) : now.index}, .why = why};
  std::vector<std::string>& words = remedy.command;
  if (now.index.empty() && data.language) words.insert(words.end(), {"--language", *data.language});
  words.emplace_back("--cache");
  if (now.config.training.stage == "dvae") {
    // The front end of the DVAE, whatever data.mel says.
    words.insert(words.end(), {"mels", "data.mel=xtts_dvae", "data.sample_rate=22050"});
  } else if (now.config.training.stage == "gpt" && !now.dvae_file.empty()) {
    words.insert(words.end(), {"codes", "--dvae", now.dvae_file});
  } else {
    return {};
  }
  if (data.trim_top_db) words.push_back(fmt::format("data.trim_top_db={}", *data.trim_top_db));
  if (data.target_loudness_lufs)
    words.push_back(fmt::format("data.target_loudness_lufs={}", *data.target_loudness_lufs));
  return remedy;
}

Remedy nothing_to_decode(const Circumstances& now, const std::string& why) {
  return now.config.training.stage == "dvae" ? cached_features(now, why) : Remedy();
}

Remedy kept_sound(const Circumstances& now) {
  if (!now.config.data.decoded_memory) return {};
  return {.settings = {"data.decoded_memory=null"},
          .why = "decoded sound that is kept in memory is not read and decoded again"};
}

Remedy look_at_data(const Circumstances& now, const std::string& why) {
  return {.command = {"doctor", "--data", data_of(now)}, .why = why};
}

Remedy less_decoding(const Circumstances& now, const std::string& what_data_shows) {
  Remedy remedy = nothing_to_decode(now, "what is cached is not decoded again");
  if (remedy.empty()) remedy = kept_sound(now);
  return remedy.empty() ? look_at_data(now, what_data_shows) : remedy;
}

int64_t workers_needed(const Figures& figures, double target) {
  const double needed = figures.host.wall / (limits::room_for_workers * std::max(target, 1e-6));
  return static_cast<int64_t>(
      std::clamp(std::ceil(needed), 1.0, static_cast<double>(limits::most_workers)));
}

Remedy more_workers(int64_t workers, const std::string& why) {
  return {.settings = {fmt::format("data.num_workers={}", workers)}, .why = why};
}

bool another_gpu_may_prepare(const Circumstances& now) {
  return now.data_on_model && now.visible_gpus > 1 && now.strategy == StrategyKind::one_device;
}

Remedy less_preparation(const Circumstances& now) {
  Remedy remedy = cached_features(now, "what is cached needs no preparation");
  if (remedy.empty())
    remedy = {.command = {"profile", "--num-steps", "20"},
              .why = "shows what of the preparation takes the time"};
  return remedy;
}

Remedy faster_copies(const Circumstances& now) {
  const DataConfig& data = now.config.data;
  if (!data.pin_memory)
    return {.settings = {"data.pin_memory=true"}, .why = "page-locked memory is copied directly"};
  if (!data.prefetch_to_gpu)
    return {.settings = {"data.prefetch_to_gpu=true"}, .why = "batches are copied ahead of time"};
  if (!data.optimize_cpu_gpu_overlap)
    return {.settings = {"data.optimize_cpu_gpu_overlap=true"},
            .why = "copies run beside the step, not in its stream"};
  return {.settings = {"data.data_gpu=null", "data.model_gpu=null",
                       fmt::format("training.visible_gpus={}", data.model_gpu.value_or("0"))},
          .why = "batches that are prepared where the model is are not copied"};
}

}  // namespace tandem::rules
