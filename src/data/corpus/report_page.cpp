#include "data/corpus/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/corpus/svg_plot.h"
#include "data/corpus/text_table.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Corpus report</title><style>
:root { --text: #1c2330; --soft: #667085; --page: #fff; --card: #f5f7fa; --line: #dde2ea;
        --bar: #3b74d9; --odd: #d6402b; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ef; --soft: #97a1b3; --page: #12161d;
        --card: #1b212b; --line: #303846; --bar: #6b9cf2; --odd: #ff7a64; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
       max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin: 0 0 .5rem }
section { background: var(--card); border-radius: 10px; padding: 1rem 1.2rem; margin: 1rem 0 }
.tiles { display: flex; flex-wrap: wrap; gap: 1rem } .tiles div { min-width: 7rem }
.tiles b { display: block; font-size: 1.5rem } .soft, svg text { color: var(--soft); fill: var(--soft) }
svg { width: 100%; height: auto; font-size: 11px } .axis { stroke: var(--line) }
.bar { fill: var(--bar) } .dot { fill: var(--bar); opacity: .5 } .odd { fill: var(--odd) }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3rem .6rem .3rem 0;
        border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere }
audio { width: 260px; height: 34px }
</style></head><body>
)";

// Names of files may hold bytes that are no UTF-8, which a page cannot.
std::string shown(const std::string& text) {
  if (find_bad_utf8(text) == std::string::npos) return html_escape(text);
  std::string plain = text;
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  return html_escape(plain);
}

std::string section(const std::string& title, const std::string& inside) {
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", html_escape(title), inside);
}

std::string tile(const std::string& value, const std::string& name) {
  return fmt::format("<div><b>{}</b><span class=\"soft\">{}</span></div>", html_escape(value),
                     html_escape(name));
}

std::string tiles(const CorpusSummary& summary) {
  const size_t named = summary.speakers.size() - summary.speakers.count("");
  std::string out = tile(fmt::format("{:.2f}", summary.kept.hours), "hours");
  out += tile(std::to_string(summary.kept.clips), "clips");
  out += tile(std::to_string(named), "named speakers");
  out += tile(std::to_string(summary.dropped_clips()), "dropped");
  if (summary.decoded) {
    out += tile(std::to_string(summary.clipped), "clips that clip");
    out += tile(fmt::format("{:.0f} %", 100 * summary.silence), "silence");
  }
  return "<section class=\"tiles\">" + out + "</section>\n";
}

std::string dropped(const CorpusSummary& summary) {
  if (summary.dropped.empty()) return "<p>none</p>\n";
  std::string out = "<table><tr><th>clips</th><th>reason</th><th>for example</th></tr>\n";
  for (const auto& [reason, count] : summary.dropped) {
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", count, shown(reason),
                       shown(summary.examples.at(reason)));
  }
  return out + "</table>\n";
}

std::string speakers(const CorpusSummary& summary) {
  std::vector<std::pair<std::string, double>> bars;
  for (const auto& [name, share] : summary.speakers) {
    const std::string label = name.empty() ? "not named" : name;
    const bool plain = find_bad_utf8(label) == std::string::npos;
    bars.emplace_back(plain ? label : "?", 60 * share.hours);
  }
  std::stable_sort(bars.begin(), bars.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr size_t most = 30;
  const size_t more = bars.size() > most ? bars.size() - most : 0;
  if (more > 0) bars.resize(most);
  return svg_bars(bars, "min") +
         (more ? fmt::format("<p class=\"soft\">and {} more</p>", more) : "");
}

// A few clips to listen to, spread over the corpus. A member of a tar has no link.
std::string players(const Dataset& dataset, const Scan& scan, const std::string& page) {
  std::vector<const ScannedClip*> playable;
  for (const ScannedClip& scanned : scan.clips) {
    if (scanned.kept() && scanned.clip.offset == 0) playable.push_back(&scanned);
  }
  constexpr size_t most = 8;
  const size_t step = std::max<size_t>(1, playable.size() / most);
  const fs::path folder = fs::absolute(page).lexically_normal().parent_path();
  std::string out;
  for (size_t i = 0, shown_clips = 0; i < playable.size() && shown_clips < most; i += step) {
    const ScannedClip& scanned = *playable[i];
    const fs::path full = (fs::path(dataset.layout.root) / scanned.clip.path).lexically_normal();
    std::string link = url_escape(full.lexically_relative(folder).string());
    if (scanned.clip.part) {
      const double start = static_cast<double>(scanned.clip.first_frame) / scanned.clip.sample_rate;
      link += fmt::format("#t={:.3f},{:.3f}", start, start + scanned.facts().seconds());
    }
    out += fmt::format(
        "<tr><td><audio controls preload=\"none\" src=\"{}\"></audio></td><td>{}<br><span "
        "class=\"soft\">{}, {:.1f} s</span></td></tr>\n",
        link, shown(scanned.clip.text), shown(scanned.clip.id), scanned.facts().seconds());
    ++shown_clips;
  }
  return out.empty() ? "" : section("Listen", "<table>" + out + "</table>\n");
}

}  // namespace

std::string report_page(const CorpusSummary& summary, const Dataset& dataset, const Scan& scan,
                        const std::string& page) {
  std::vector<double> seconds, loudness;
  std::vector<Dot> dots;
  for (const ScannedClip& scanned : scan.clips) {
    const bool odd = scanned.reason == DropReason::outlier;
    if (!scanned.kept() && !odd) continue;
    const double length = scanned.facts().seconds();
    dots.push_back({length, static_cast<double>(scanned.clip.tokens), odd});
    if (odd) continue;
    seconds.push_back(length);
    if (scanned.facts().decoded) loudness.push_back(static_cast<double>(scanned.facts().loudness));
  }
  const std::string unit = summary.characters ? "characters" : "tokens";
  std::string out = head;
  out +=
      fmt::format("<h1>{}</h1>\n<p class=\"soft\">{}</p>\n",
                  shown(fs::path(dataset.layout.root).filename().string()), shown(summary.layout));
  out += tiles(summary);
  out += section("Length of clips", svg_histogram(seconds, "seconds"));
  out +=
      section(unit + " against seconds; outliers are marked", svg_scatter(dots, "seconds", unit));
  if (!loudness.empty())
    out += section("Loudness", svg_histogram(loudness, "dBFS, without silence"));
  out += section("Speakers", speakers(summary));
  out += section("Dropped", dropped(summary));
  out += players(dataset, scan, page);
  return out + "<section><h2>All figures</h2><pre>" + shown(to_table(summary)) +
         "</pre></section>\n</body></html>\n";
}

}  // namespace tandem
