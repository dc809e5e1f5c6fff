#include "observe/music_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "observe/music_report_clip.h"
#include "observe/report_charts.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr size_t most_text = 600, most_failures = 100;

// First, last, and evenly between.
std::vector<const MusicReportClip*> sample_of(const MusicReport& report) {
  std::vector<const MusicReportClip*> whole, sample;
  for (const MusicReportClip& clip : report.clips)
    if (clip.error.empty()) whole.push_back(&clip);
  const size_t count = std::min(report.most_clips, whole.size());
  for (size_t i = 0; i < count; ++i)
    sample.push_back(whole[count == 1 ? 0 : i * (whole.size() - 1) / (count - 1)]);
  return sample;
}

std::string clips_html(const MusicReport& report) {
  std::string html;
  size_t room = report.most_bytes, silent = 0, shown = 0;
  for (const MusicReportClip* clip : sample_of(report)) {
    const auto seen = look_at_clip(clip->file);
    if (!seen) continue;
    ++shown;
    html += fmt::format(
        "<article class=\"sample\">\n<h3>{}</h3>\n<p class=\"step\">{:.2f} s, {}, {} Hz</p>\n"
        "<p>{}</p>\n<img alt=\"Spectrogram of {}\" src=\"data:image/png;base64,{}\">\n",
        html_escaped(clip->name), seen->seconds, seen->channels == 2 ? "stereo" : "mono",
        seen->rate, html_escaped(clip->text.substr(0, most_text)), html_escaped(clip->name),
        base64(seen->png));
    if (seen->bytes.size() <= room) {
      room -= seen->bytes.size();
      html += fmt::format("<audio controls preload=\"none\" src=\"data:{};base64,{}\"></audio>\n",
                          seen->type, base64(seen->bytes));
    } else {
      ++silent;
    }
    html += "</article>\n";
  }
  if (html.empty()) return "";
  html = "<div class=\"samples\">\n" + html + "</div>\n";
  if (shown < report.clips.size() || silent > 0)
    html += "<p class=\"note\">All of them are in the folder <code>audio_samples</code>.</p>\n";
  return html;
}

std::string device_rows(const MusicReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"Device", "Hardware", "Busy", "Deviation", "Lowest", "Peak memory"}};
  const auto percent = [](const DeviceSummary& device, double share) {
    return device.readings > 0 ? fmt::format("{:.0f} %", 100 * share) : "–";
  };
  for (const DeviceSummary& device : summarise(report.timeline)) {
    const auto found = std::ranges::find(report.hardware, device.name,
                                         &std::pair<std::string, std::string>::first);
    rows.push_back({device.name, found == report.hardware.end() ? "–" : found->second,
                    percent(device, device.mean), percent(device, device.deviation),
                    percent(device, device.lowest), format_bytes(device.peak_used)});
  }
  return table_html(rows);
}

std::string failures_html(const MusicReport& report) {
  std::vector<std::vector<std::string>> rows = {{"Clip", "Why"}};
  size_t all = 0;
  for (const MusicReportClip& clip : report.clips) {
    if (clip.error.empty() || ++all > most_failures) continue;
    rows.push_back({clip.name, clip.error});
  }
  const std::string more =
      all > most_failures
          ? fmt::format("<p class=\"note\">{} of {}; all are in <code>manifest.jsonl</code>.</p>\n",
                        most_failures, all)
          : "";
  return table_html(rows) + more;
}

std::string plan_html(const MusicReport& report) {
  std::vector<std::vector<std::string>> rows = {{"Part", "Planned"}};
  for (const auto& [name, value] : report.plan) rows.push_back({name, value});
  return table_html(rows);
}

std::string charts_html(const std::vector<Chart>& charts) {
  std::string html;
  for (size_t i = 0; i < charts.size(); ++i) {
    html += fmt::format(
        "<figure class=\"chart\" data-chart=\"{}\"><figcaption>{}<span>{}</span></figcaption>"
        "</figure>\n",
        i, html_escaped(charts[i].title), html_escaped(charts[i].unit));
  }
  return html.empty() ? "" : "<div class=\"charts\">\n" + html + "</div>\n";
}

}  // namespace

std::string make_music_report(const MusicReport& report) {
  RunRecord record;
  record.timeline = report.timeline;
  const std::vector<Chart> charts = timeline_charts(record);
  const std::string settings =
      report.settings.empty() ? ""
                              : "<details class=\"card\"><summary>config.yaml</summary>\n<pre>" +
                                    html_escaped(report.settings) + "</pre></details>\n";
  return page_html(
      {.title = report.title,
       .state = report.state,
       .state_words = report.state_words,
       .body = tiles_html(report.tiles) + section_html("samples", "Clips", clips_html(report)) +
               section_html("devices", "Devices", device_rows(report) + charts_html(charts)) +
               section_html("failures", "Clips that failed", failures_html(report)) +
               section_html("plan", "Plan", plan_html(report)) +
               section_html("settings", "Settings", settings),
       .charts_json = to_script_json(charts)});
}

}  // namespace tandem
