#include "data/corpus/corpus_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/corpus/tsv_field.h"

namespace tandem {
namespace {

constexpr float notable_clipping = 1e-4f;  // share of samples
constexpr float notable_offset = 0.01f;

void add(Share& share, double seconds) {
  ++share.clips;
  share.hours += seconds / 3600;
}

void count_dropped(CorpusSummary& summary, const std::string& name, DropReason reason,
                   const std::string& detail) {
  ++summary.dropped[to_string(reason)];
  const std::string example = detail.empty() ? name : name + ": " + detail;
  summary.examples.try_emplace(to_string(reason), tsv_field(example));
}

void add_statistics(CorpusSummary& summary, const SoundFacts& facts) {
  summary.clipped += facts.clipping > notable_clipping;
  summary.silent += facts.silence >= 1;
  summary.off_centre += std::fabs(facts.dc) > notable_offset;
  summary.silence += facts.silence;
  summary.clipping += facts.clipping;
}

}  // namespace

Percentiles percentiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(
        std::llround(share * static_cast<double>(values.size() - 1)))];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {at(0), at(.05), at(.5), at(.95), at(1), sum / static_cast<double>(values.size())};
}

int64_t CorpusSummary::dropped_clips() const {
  int64_t sum = 0;
  for (const auto& [reason, count] : dropped) sum += count;
  return sum;
}

CorpusSummary summarise(const Dataset& dataset, const Scan& scan) {
  CorpusSummary summary;
  summary.layout = dataset.layout.why;
  summary.found = static_cast<int64_t>(scan.clips.size() + scan.bad_rows.size());
  summary.characters = scan.characters;
  for (const BadRow& row : scan.bad_rows) {
    count_dropped(summary, row.where, DropReason::bad_row, row.sentence);
  }
  std::vector<double> seconds, tokens, loudness;
  int64_t decoded = 0;
  for (const ScannedClip& scanned : scan.clips) {
    const Clip& clip = scanned.clip;
    const SoundFacts& facts = scanned.facts();
    if (!scanned.kept()) {
      count_dropped(summary, clip.path, scanned.reason, scanned.detail);
      continue;
    }
    const double length = facts.seconds();
    for (Share* share : {&summary.kept, &summary.speakers[clip.speaker],
                         &summary.languages[clip.language], &summary.formats[facts.format],
                         &summary.rates[clip.sample_rate], &summary.channels[clip.channels]}) {
      add(*share, length);
    }
    seconds.push_back(length);
    tokens.push_back(clip.tokens);
    if (!facts.decoded) continue;
    ++decoded;
    loudness.push_back(static_cast<double>(facts.loudness));
    add_statistics(summary, facts);
  }
  summary.decoded = decoded > 0;
  if (decoded > 0) {
    summary.silence /= static_cast<double>(decoded);
    summary.clipping /= static_cast<double>(decoded);
  }
  summary.seconds = percentiles_of(std::move(seconds));
  summary.tokens = percentiles_of(std::move(tokens));
  summary.loudness = percentiles_of(std::move(loudness));
  return summary;
}

std::string dropped_table(const Scan& scan) {
  std::string text = "path\treason\tdetail\n";
  const auto row = [&](const std::string& path, DropReason reason, const std::string& detail) {
    text += fmt::format("{}\t{}\t{}\n", tsv_field(path), to_string(reason), tsv_field(detail));
  };
  for (const BadRow& bad : scan.bad_rows) row(bad.where, DropReason::bad_row, bad.sentence);
  for (const ScannedClip& scanned : scan.clips) {
    const Clip& clip = scanned.clip;
    // Many clips may share one tar or one long recording.
    const bool shared = clip.offset > 0 || clip.part || scanned.sound.key.seconds > 0;
    if (!scanned.kept()) {
      row(shared ? clip.path + ":" + clip.id : clip.path, scanned.reason, scanned.detail);
    }
  }
  return text;
}

}  // namespace tandem
