// What people see of a run of `tandem generate`: one moving line while it runs, then the summary,
// and in its folder timeline.jsonl and report.html.
//
//   GenerateView view(plan, folder / "timeline.jsonl", observe.metrics_port);
//   generate_clips(pool, captions, {.on_progress = [&](const auto& now) { view.update(now); }});
//   view.close();
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cli/generate_plan.h"
#include "generate/music_jobs.h"
#include "generate/music_manifest.h"
#include "observe/device_load.h"
#include "observe/metrics_server.h"
#include "observe/progress.h"
#include "observe/prometheus_figures.h"
#include "observe/timeline.h"

namespace tandem {

class GenerateView {
 public:
  // With a port also what Prometheus reads; throws Error(config) when it cannot be had.
  GenerateView(const GeneratePlan& plan, const std::filesystem::path& timeline,
               std::optional<int64_t> metrics_port);
  GenerateView(const GenerateView&) = delete;
  GenerateView& operator=(const GenerateView&) = delete;

  void update(const MusicJobProgress& progress);          // from any thread
  void close();                                           // ends the line and the timeline
  const MusicJobProgress& last() const { return last_; }  // once closed
  const std::vector<DeviceSummary>& devices() const { return devices_; }

  // "1.25 clips/s, 37.5x real time, busy 97 % 95 %"
  static std::string figures(const MusicJobProgress& progress,
                             const std::vector<DeviceReading>& readings);

 private:
  std::mutex mutex_;
  DeviceLoad load_;
  std::vector<std::string> device_names_;
  std::unique_ptr<RunFigures> figures_;    // of the port; read by the server
  std::unique_ptr<MetricsServer> server_;  // goes before them
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<Progress> line_;
  int64_t every_ = 1, shown_ = -1;
  MusicJobProgress last_;
  std::vector<DeviceSummary> devices_;
};

// How a run ended.
struct GenerateEnd {
  std::filesystem::path folder;
  MusicJobProgress progress;
  std::string state, state_words;  // "finished", "stopped" or "failed", and a sentence
};

// What the manifest of a folder says of its clips, also while jobs are still writing theirs.
std::vector<ClipEntry> clip_entries(const std::filesystem::path& folder);

void print_summary(const GenerateEnd& end, const std::vector<DeviceSummary>& devices);
std::string end_json(const GenerateRequest& request, const GeneratePlan& plan,
                     const GenerateEnd& end);
// report.html in the folder; a warning when it cannot be made. Gives its path, or nothing.
std::string write_music_report(const GenerateRequest& request, const GeneratePlan& plan,
                               const GenerateEnd& end, const std::filesystem::path& timeline);

}  // namespace tandem
