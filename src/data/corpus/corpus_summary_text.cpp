#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/corpus/corpus_report.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string hours(double value) {
  return value >= 1 ? fmt::format("{:.2f} h", value) : fmt::format("{:.1f} min", 60 * value);
}

std::string line(const std::string& name, const std::string& value) {
  return fmt::format("{:<12} {}\n", name, value);
}

// The largest shares first, so that the rest can be counted.
template <class Key>
std::string shares(const std::map<Key, Share>& all, const char* unit, const char* unnamed) {
  std::vector<std::pair<Key, Share>> sorted(all.begin(), all.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.hours > b.second.hours; });
  constexpr size_t most = 5;
  std::vector<std::string> parts;
  for (size_t i = 0; i < sorted.size() && i < most; ++i) {
    std::string name = fmt::format("{}{}", sorted[i].first, unit);
    if (name.empty()) name = unnamed;
    parts.push_back(sorted.size() == 1
                        ? name
                        : fmt::format("{} ({} clips, {})", name, sorted[i].second.clips,
                                      hours(sorted[i].second.hours)));
  }
  if (sorted.size() > most) parts.push_back(fmt::format("{} more", sorted.size() - most));
  return join(parts, ", ");
}

std::string speakers_line(const CorpusSummary& summary) {
  const size_t unnamed = summary.speakers.count("");
  if (unnamed == summary.speakers.size()) return "not named";
  return fmt::format("{}: {}", summary.speakers.size() - unnamed,
                     shares(summary.speakers, "", "not named"));
}

nlohmann::ordered_json json_of(const Percentiles& p) {
  return {{"min", p.least}, {"p5", p.p5},    {"p50", p.p50},
          {"p95", p.p95},   {"max", p.most}, {"mean", p.mean}};
}

template <class Key>
nlohmann::ordered_json json_of(const std::map<Key, Share>& shares) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [name, share] : shares) {
    out[fmt::format("{}", name)] = {{"clips", share.clips}, {"hours", share.hours}};
  }
  return out;
}

}  // namespace

std::string to_table(const CorpusSummary& summary) {
  const auto spread = [](const Percentiles& p, const char* unit, int digits) {
    return fmt::format("{:.{}f} to {:.{}f}{}, median {:.{}f}, 5-95 % {:.{}f} to {:.{}f}", p.least,
                       digits, p.most, digits, unit, p.p50, digits, p.p5, digits, p.p95, digits);
  };
  std::string text = line("layout", summary.layout);
  text += line("clips", fmt::format("{} of {} kept, {}", summary.kept.clips, summary.found,
                                    hours(summary.kept.hours)));
  if (summary.kept.clips > 0) {
    text += line("speakers", speakers_line(summary));
    text += line("languages", shares(summary.languages, "", "unknown"));
    text += line("rates", shares(summary.rates, " Hz", ""));
    text += line("channels", shares(summary.channels, "", ""));
    text += line("formats", shares(summary.formats, "", "unknown"));
    text += line("seconds", spread(summary.seconds, " s", 1));
    text += line(summary.characters ? "characters" : "tokens", spread(summary.tokens, "", 0));
  }
  if (summary.decoded) {
    text += line("loudness", spread(summary.loudness, " dBFS", 1));
    text += line("sound", fmt::format("{} clips clip, {} are silent, {} have a DC offset; {:.0f} % "
                                      "silence on average",
                                      summary.clipped, summary.silent, summary.off_centre,
                                      100 * summary.silence));
  }
  text +=
      line("dropped", summary.dropped.empty() ? "none" : std::to_string(summary.dropped_clips()));
  for (const auto& [reason, count] : summary.dropped) {
    text += fmt::format("  {:>8}  {:<15} e.g. {}\n", count, reason, summary.examples.at(reason));
  }
  return text;
}

nlohmann::ordered_json to_json(const CorpusSummary& summary) {
  nlohmann::ordered_json out = {{"layout", summary.layout},
                                {"found", summary.found},
                                {"clips", summary.kept.clips},
                                {"hours", summary.kept.hours},
                                {"speakers", json_of(summary.speakers)},
                                {"languages", json_of(summary.languages)},
                                {"rates", json_of(summary.rates)},
                                {"channels", json_of(summary.channels)},
                                {"formats", json_of(summary.formats)},
                                {"seconds", json_of(summary.seconds)},
                                {"tokens", json_of(summary.tokens)},
                                {"tokens_are_characters", summary.characters},
                                {"dropped", summary.dropped_clips()},
                                {"dropped_by_reason", summary.dropped}};
  if (summary.decoded) {
    out["loudness_dbfs"] = json_of(summary.loudness);
    out["clipped_clips"] = summary.clipped;
    out["silent_clips"] = summary.silent;
    out["dc_offset_clips"] = summary.off_centre;
    out["mean_silence_share"] = summary.silence;
    out["mean_clipping_share"] = summary.clipping;
  }
  return out;
}

}  // namespace tandem
