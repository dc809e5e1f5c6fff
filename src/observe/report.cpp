#include "observe/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "observe/report_charts.h"
#include "observe/report_html.h"
#include "observe/report_samples.h"
#include "observe/run_record.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string clock_time(double seconds) {
  if (seconds <= 0) return "";
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  localtime_r(&whole, &parts);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", parts);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Time in which steps were made: what lies between two starts does not count.
double seconds_at_work(const RunRecord& run) {
  double sum = 0, begun = 0;
  for (const RunEvent& event : run.events) {
    if (event.begins()) begun = event.time;
    if (!event.ends() || begun == 0) continue;
    sum += event.time - begun;
    begun = 0;
  }
  // Killed, or still going.
  if (begun > 0 && run.last_time > begun) sum += run.last_time - begun;
  return sum > 0 ? sum : run.last_time - run.first_time;
}

std::vector<Tile> tiles_of(const RunRecord& run) {
  std::vector<Tile> tiles;
  tiles.push_back({run.total_steps > 0 ? fmt::format("{} / {}", run.last_step, run.total_steps)
                                       : std::to_string(run.last_step),
                   "steps"});
  const auto add_median = [&](const char* name, double factor, const char* format,
                              const char* label) {
    if (const Curve* curve = run.curve(name)) {
      tiles.push_back({fmt::format(fmt::runtime(format), factor * median(curve->values)), label});
    }
  };
  if (const Curve* loss = run.curve("loss"))
    tiles.push_back({fmt::format("{:.4f}", smoothed(loss->values).back()), "training loss"});
  if (const auto& best = run.best.line())
    tiles.push_back({fmt::format("{:.4f}", *best->value("loss")),
                     fmt::format("best validation, step {}", best->step)});
  add_median("tokens_per_second", 1, "{:.0f}", "tokens a second");
  add_median("audio_seconds_per_second", 1, "{:.0f}", "seconds of sound a second");
  add_median("wait_share", 100, "{:.1f} %", "of a step waiting for data");
  if (const double seconds = seconds_at_work(run); seconds > 0)
    tiles.push_back({format_seconds(seconds), "at work"});
  return tiles;
}

std::string device_table(const RunRecord& run) {
  std::vector<std::pair<std::string, std::string>> hardware;
  for (const RunEvent& event : run.events)
    if (event.begins()) hardware = event.devices;
  std::vector<std::vector<std::string>> rows = {
      {"Device", "Hardware", "Busy", "Deviation", "Lowest", "Peak memory", "Limit"}};
  const auto percent = [](const DeviceSummary& summary, double share) {
    return summary.readings > 0 ? fmt::format("{:.0f} %", 100 * share) : "–";
  };
  for (const DeviceSummary& device : summarise(run.timeline)) {
    std::string name = "–";
    for (const auto& [key, value] : hardware)
      if (key == device.name) name = value;
    rows.push_back({device.name, name, percent(device, device.mean),
                    percent(device, device.deviation), percent(device, device.lowest),
                    format_bytes(device.peak_used),
                    device.limit > 0 ? format_bytes(device.limit) : "–"});
  }
  return table_html(rows);
}

std::string event_table(const RunRecord& run) {
  constexpr size_t most = 200;
  std::vector<std::vector<std::string>> rows = {{"Time", "Step", "What", ""}};
  for (const RunEvent& event : run.events) {
    if (event.kind == "plan") continue;
    std::string text = event.text;
    if (event.begins() && text.empty())
      text = fmt::format("process {} on {}, to step {}", event.pid, event.host, event.total_steps);
    rows.push_back({clock_time(event.time), std::to_string(event.step), event.kind, text});
  }
  const size_t all = rows.size() - 1;
  if (all <= most) return table_html(rows);
  rows.erase(rows.begin() + 1, rows.end() - most);
  return table_html(rows) +
         fmt::format(
             "<p class=\"note\">The last {} of {}; all are in <code>events.jsonl</code>.</p>\n",
             most, all);
}

std::string plan_table(const RunRecord& run) {
  const std::vector<std::pair<std::string, std::string>>* plan = nullptr;
  for (const RunEvent& event : run.events)
    if (event.kind == "plan") plan = &event.rows;
  if (!plan) return "";
  std::vector<std::vector<std::string>> rows = {{"Part", "Planned"}};
  for (const auto& [name, value] : *plan) rows.push_back({name, value});
  return table_html(rows);
}

// Figures that the script fills; they are numbered through the page.
std::string figures_html(const std::vector<Chart>& charts, size_t first) {
  std::string html;
  for (size_t i = 0; i < charts.size(); ++i) {
    html += fmt::format(
        "<figure class=\"chart\" data-chart=\"{}\"><figcaption>{}<span>{}</span></figcaption>"
        "</figure>\n",
        first + i, html_escaped(charts[i].title), html_escaped(charts[i].unit));
  }
  return html.empty() ? "" : "<div class=\"charts\">\n" + html + "</div>\n";
}

const char* state_class(RunStanding::Kind kind) {
  switch (kind) {
    case RunStanding::running: return "running";
    case RunStanding::finished: return "finished";
    case RunStanding::stopped: return "stopped";
    case RunStanding::failed: return "failed";
    case RunStanding::gone: return "gone";
  }
  return "";
}

}  // namespace

std::string make_report(const std::filesystem::path& folder, const ReportOptions& options) {
  const RunRecord run = read_run(folder);
  std::vector<Chart> charts = metric_charts(run);
  const std::vector<Chart> over_time = timeline_charts(run);
  const RunStanding standing = standing_of(run.events);
  ReportPage page{.title = std::filesystem::absolute(folder).lexically_normal().filename().string(),
                  .state = state_class(standing.kind),
                  .state_words = standing.words};
  if (page.title.empty())
    page.title = std::filesystem::absolute(folder).parent_path().filename().string();
  if (run.last_time > 0) page.state_words += ", last step at " + clock_time(run.last_time);
  const std::string settings =
      run.settings.empty() ? ""
                           : "<details class=\"card\"><summary>config.yaml</summary>\n<pre>" +
                                 html_escaped(run.settings) + "</pre></details>\n";
  page.body = tiles_html(tiles_of(run)) +
              section_html("curves", "Curves", figures_html(charts, 0)) +
              section_html("devices", "Devices and data",
                           device_table(run) + figures_html(over_time, charts.size())) +
              section_html("samples", "Samples", samples_html(folder, options)) +
              section_html("events", "What happened", event_table(run)) +
              section_html("plan", "Plan", plan_table(run)) +
              section_html("settings", "Settings", settings);
  charts.insert(charts.end(), over_time.begin(), over_time.end());
  page.charts_json = to_script_json(charts);
  return page_html(page);
}

std::filesystem::path write_report(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "report.html";
  write_file_atomically(path, make_report(folder));
  return path;
}

}  // namespace tandem
