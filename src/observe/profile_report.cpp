#include "observe/profile_report.h"

#include <fmt/format.h>

#include "device/logical_device.h"
#include "observe/profile_overlap.h"
#include "observe/profile_summary.h"
#include "observe/report_charts.h"
#include "observe/report_html.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string giga(double rate) { return rate > 0 ? fmt::format("{:.2f}", rate / 1e9) : "–"; }

std::string ms_heading(const Profile& profile) {
  return fmt::format("ms a {}", step_word(profile));
}

std::string parts_html(const Profile& profile, const ProfiledReplica& replica) {
  std::vector<std::vector<std::string>> rows = {
      {"Part", ms_heading(profile), "Deviation", "Share", "Host ms"}};
  for (const PartRow& part : step_figures_of(profile, replica).parts)
    rows.push_back({part.name, milliseconds(part.seconds), milliseconds(part.deviation),
                    percent(part.share), milliseconds(part.host_seconds)});
  return table_html(rows);
}

std::string work_html(const Profile& profile, const std::vector<WorkRow>& work, const char* what) {
  constexpr size_t most = 60;
  std::vector<std::vector<std::string>> rows = {
      {what, fmt::format("Calls a {}", step_word(profile)), ms_heading(profile), "Share", "GFLOP/s",
       "GB/s", "Of the limit"}};
  for (size_t i = 0; i < std::min(most, work.size()); ++i) {
    const WorkRow& row = work[i];
    rows.push_back({row.name.substr(0, 120), fmt::format("{:.1f}", row.calls),
                    milliseconds(row.seconds), percent(row.share), giga(row.flops), giga(row.bytes),
                    row.limit > 0 ? percent(row.limit) : "–"});
  }
  std::string html = table_html(rows);
  if (work.size() > most)
    html += fmt::format("<p class=\"note\">The longest {} of {}.</p>\n", most, work.size());
  return html;
}

std::string memory_html(const Profile& profile, const ProfiledReplica& replica) {
  std::vector<std::vector<std::string>> rows = {{"Part of the memory", "Size"}};
  for (const auto& [name, bytes] : replica.memory) rows.push_back({name, format_bytes(bytes)});
  rows.push_back({fmt::format("a {} on top of it, at most", step_word(profile)),
                  format_bytes(replica.largest_rise)});
  rows.push_back({"most at any moment seen", format_bytes(replica.most_used)});
  return table_html(rows);
}

Chart step_chart(const Profile& profile) {
  Chart chart{.title = fmt::format("Time of a {}", step_word(profile)),
              .unit = "ms",
              .from_zero = true,
              .lines = {}};
  for (const ProfiledReplica& replica : profile.replicas) {
    ChartLine line{.name = replica.device->name(), .x = {}, .y = {}};
    for (const RecordedStep& step : replica.timed) {
      line.x.push_back(static_cast<double>(step.step));
      line.y.push_back(1e3 * step.device.seconds());
    }
    chart.lines.push_back(thinned(line));
  }
  return chart;
}

std::string overlap_html(const Profile& profile) {
  const Overlaps overlaps = overlaps_of(profile);
  const auto row = [](const char* name, const Overlap& overlap) {
    return std::vector<std::string>{
        name, milliseconds(overlap.seconds),
        overlap.seconds > 0 ? percent(overlap.hidden / overlap.seconds) : "–"};
  };
  return table_html({{"Beside the step", "ms", "While the step computed"},
                     row("copies to the model", overlaps.copies),
                     row("everything the feed did", overlaps.beside)});
}

// Of generating.
std::string batch_html(const Profile& profile, const ProfiledReplica& replica) {
  if (!profile.music) return "";
  const BatchFigures batch = batch_figures_of(profile, replica);
  std::vector<std::vector<std::string>> rows = {
      {"Decoding", ""},
      {"steps a batch", std::to_string(profile.music->decoding_steps)},
      {"ms a step", fmt::format("{:.4f}", 1e3 * batch.decoding_step)}};
  if (batch.following > 0) {
    rows.push_back({"ms a batch that follows another", milliseconds(batch.following)});
    rows.push_back({"sound and writing hidden then", percent(batch.hidden)});
  }
  return table_html(rows);
}

Tile speed_tile(const Profile& profile, const StepFigures& step) {
  if (step.mean <= 0) return {"–", "speed"};
  if (!profile.generates())
    return {fmt::format("{:.0f}", profile.tokens_a_step / step.mean), "tokens a second"};
  const BatchFigures batch = batch_figures_of(profile, profile.replicas.front());
  return {fmt::format("{:.3f}", batch.following > 0 ? batch.following_clips_per_second
                                                    : batch.clips_per_second),
          "clips a second"};
}

std::vector<Tile> tiles_of(const Profile& profile, const StepFigures& step) {
  std::vector<Tile> tiles = {
      {fmt::format("{:.3f} ms", 1e3 * step.mean),
       fmt::format("a {}, mean of {}", step_word(profile), step.steps)},
      {fmt::format("{:.3f} ms", 1e3 * step.p95),
       fmt::format("95 of 100 {} take at most", profile.generates() ? "batches" : "steps")},
      speed_tile(profile, step),
      {percent(step.accounted), fmt::format("of a {} accounted for", step_word(profile))}};
  for (const PartRow& part : step.parts)
    if (part.name == "wait for data") tiles.push_back({percent(part.share), "waiting for data"});
  if (profile.cost.told())
    tiles.push_back({fmt::format("{:+.1f} %", 100 * profile.cost.timing()), "cost of the timing"});
  return tiles;
}

}  // namespace

std::string make_profile_report(const Profile& profile) {
  const StepFigures first = step_figures_of(profile, profile.replicas.front());
  const std::vector<Chart> charts = {step_chart(profile)};
  std::string body = tiles_html(tiles_of(profile, first));
  const std::string plural = profile.generates() ? "batches" : "steps";
  body += section_html("timeline", "Timeline of the last " + plural,
                       timeline_svg(profile, profile.generates() ? 1 : 3));
  const std::string figure = fmt::format(
      "<div class=\"charts\">\n<figure class=\"chart\" "
      "data-chart=\"0\"><figcaption>{}<span>{}</span>"
      "</figcaption></figure>\n</div>\n",
      html_escaped(charts[0].title), html_escaped(charts[0].unit));
  body += section_html("steps", profile.generates() ? "Batches" : "Steps", figure);
  for (size_t rank = 0; rank < profile.replicas.size(); ++rank) {
    const ProfiledReplica& replica = profile.replicas[rank];
    const std::string title =
        html_escaped(replica.device->name() + ", " + replica.device->info().hardware);
    const bool launches = replica.device->kind() == DeviceKind::cuda;
    body += section_html(fmt::format("replica-{}", rank), title,
                         parts_html(profile, replica) + batch_html(profile, replica) +
                             work_html(profile, kernel_rows(profile, rank), "Kernel") +
                             work_html(profile, operation_rows(profile, rank),
                                       launches ? "Operation (its launch)" : "Operation") +
                             memory_html(profile, replica));
  }
  body += section_html("beside", fmt::format("Beside the {}", step_word(profile)),
                       (profile.generates() ? "" : overlap_html(profile)) +
                           work_html(profile, feed_rows(profile), "Operation"));
  if (!profile.kernels.failure.empty())
    body +=
        "<p class=\"note\">Kernels could not be traced: " + html_escaped(profile.kernels.failure) +
        "</p>\n";
  if (!profile.work_failure.empty())
    body += "<p class=\"note\">The work of kernels could not be told: " +
            html_escaped(profile.work_failure) + "</p>\n";
  return page_html(
      {.title = profile.generates() ? "Profile of generating" : "Profile of stage " + profile.stage,
       .state = "finished",
       .state_words = fmt::format("{} timed {}, {} traced, {} {}, {}", first.steps, plural,
                                  profile.replicas.front().traced.size(), profile.rows,
                                  profile.generates() ? "clips" : "rows", profile.precision),
       .body = body,
       .charts_json = to_script_json(charts)});
}

}  // namespace tandem
