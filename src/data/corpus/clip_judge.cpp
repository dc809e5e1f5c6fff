#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "data/corpus/scan.h"

namespace tandem {
namespace {

void drop(ScannedClip& scanned, DropReason reason, std::string detail) {
  scanned.reason = reason;
  scanned.detail = std::move(detail);
}

void judge_one(ScannedClip& scanned, const ClipLimits& limits, int max_tokens) {
  const double seconds = scanned.facts().seconds();
  const Clip& clip = scanned.clip;
  if (seconds < limits.min_seconds) {
    drop(scanned, DropReason::too_short,
         fmt::format("{:.2f} s; at least {:.2f} s", seconds, limits.min_seconds));
  } else if (seconds > limits.max_seconds) {
    drop(scanned, DropReason::too_long,
         fmt::format("{:.2f} s; at most {:.2f} s", seconds, limits.max_seconds));
  } else if (scanned.cleaned_text.empty()) {
    drop(scanned, DropReason::no_text, clip.text.empty() ? "" : "nothing is left after cleaning");
  } else if (clip.tokens > max_tokens) {
    drop(scanned, DropReason::text_too_long,
         fmt::format("{}; at most {}", clip.tokens, max_tokens));
  } else if (scanned.unknown_tokens) {
    scanned.reason = DropReason::unknown_tokens;  // the detail was found with the tokens
  }
}

// The first of several stays.
void drop_duplicates(std::vector<ScannedClip>& clips) {
  std::unordered_map<uint64_t, const Clip*> heard;
  std::unordered_map<std::string, const Clip*> named;
  for (ScannedClip& scanned : clips) {
    if (!scanned.kept()) continue;
    const Clip& clip = scanned.clip;
    const std::string place =
        fmt::format("{}\n{}\n{}\n{}", clip.path, clip.offset, clip.first_frame, clip.frames);
    const Clip*& same_place = named[place];
    const Clip* first = same_place;
    if (!first && clip.fingerprint != 0) {
      const Clip*& same_sound = heard[clip.fingerprint];
      if (same_sound && same_sound->frames == clip.frames &&
          same_sound->sample_rate == clip.sample_rate) {
        first = same_sound;
      } else {
        same_sound = &clip;
      }
    }
    if (!first) {
      same_place = &clip;
      continue;
    }
    const char* text = first->text == clip.text ? "" : ", with another text";
    drop(scanned, DropReason::duplicate, fmt::format("the same sound as `{}`{}", first->id, text));
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Robust z-score: 0.6745 * (x - median) / MAD is a z-score where x is normal. The spread has a
// floor, or a corpus of equal clips would call every difference an outlier.
void drop_outliers(std::vector<ScannedClip*>& clips, double limit) {
  constexpr size_t fewest = 30;
  constexpr double least_spread = 0.1;
  if (clips.size() < fewest) return;
  std::vector<double> rates;
  for (const ScannedClip* scanned : clips) {
    rates.push_back(std::log(std::max(1, scanned->clip.tokens) / scanned->facts().seconds()));
  }
  const double middle = median(rates);
  std::vector<double> distances;
  for (const double rate : rates) distances.push_back(std::fabs(rate - middle));
  const double spread = std::max(least_spread, median(distances));
  for (size_t i = 0; i < clips.size(); ++i) {
    const double z = 0.6745 * (rates[i] - middle) / spread;
    if (std::fabs(z) <= limit) continue;
    drop(*clips[i], DropReason::outlier,
         fmt::format("{:.1f} tokens a second, others have {:.1f} (z {:+.1f})", std::exp(rates[i]),
                     std::exp(middle), z));
  }
}

}  // namespace

void judge_clips(std::vector<ScannedClip>& clips, const ClipLimits& limits, int max_tokens) {
  for (ScannedClip& scanned : clips) {
    if (scanned.kept()) judge_one(scanned, limits, max_tokens);
  }
  drop_duplicates(clips);
  if (limits.outlier_z <= 0) return;
  std::map<std::string, std::vector<ScannedClip*>> by_language;
  for (ScannedClip& scanned : clips) {
    if (scanned.kept()) by_language[scanned.clip.language].push_back(&scanned);
  }
  for (auto& [language, spoken] : by_language) drop_outliers(spoken, limits.outlier_z);
}

}  // namespace tandem
