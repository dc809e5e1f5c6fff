#include "cli/generate_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "device/logical_device.h"
#include "observe/music_report.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

int64_t made(const MusicJobProgress& progress) {
  return progress.done - progress.skipped - progress.failed;
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

double device_seconds_a_clip(const MusicJobProgress& progress) {
  return ratio(progress.device_seconds, static_cast<double>(made(progress)));
}

std::vector<MusicReportClip> report_clips(const std::filesystem::path& folder) {
  std::vector<MusicReportClip> clips;
  for (const ClipEntry& entry : clip_entries(folder)) {
    const bool done = entry.status == "done";
    clips.push_back({.name = std::filesystem::path(entry.file).stem().string(),
                     .text = entry.text,
                     .file = folder / "audio_samples" / entry.file,
                     .error = done                  ? ""
                              : entry.error.empty() ? "no reason was given"
                                                    : entry.error});
  }
  return clips;
}

std::vector<Tile> report_tiles(const GenerateEnd& end, const std::vector<MusicReportClip>& clips) {
  const MusicJobProgress& progress = end.progress;
  const auto failed =
      std::ranges::count_if(clips, [](const MusicReportClip& clip) { return !clip.error.empty(); });
  const auto whole = static_cast<int64_t>(clips.size()) - failed;
  std::vector<Tile> tiles = {{std::to_string(whole), "clips"},
                             {std::to_string(failed), "failed"},
                             {format_seconds(progress.sound_seconds), "of sound made in this run"},
                             {format_seconds(end.progress.seconds), "for it"}};
  if (made(progress) > 0) {
    tiles.push_back(
        {fmt::format("{:.1f}x", ratio(progress.sound_seconds, end.progress.seconds)), "real time"});
    tiles.push_back(
        {fmt::format("{:.3g} s", device_seconds_a_clip(progress)), "of a device a clip"});
  }
  return tiles;
}

}  // namespace

GenerateView::GenerateView(const GeneratePlan& plan, const std::filesystem::path& timeline,
                           std::optional<int64_t> metrics_port)
    : load_(plan.devices), every_(std::max<int64_t>(1, plan.clips / 20)) {
  for (const LogicalDevice* device : plan.devices) device_names_.push_back(device->name());
  if (metrics_port) {
    figures_ = std::make_unique<RunFigures>(
        PrometheusLabels{{"version", TANDEM_VERSION}, {"build", TANDEM_BUILD_TYPE}},
        PrometheusLabels{{"command", "generate"}, {"folder", timeline.parent_path().string()}});
    figures_->take_clips({.total = plan.clips}, device_names_);
    server_ = std::make_unique<MetricsServer>(
        MetricsServerOptions{.port = *metrics_port, .text = [this] { return figures_->text(); }});
    log_info("metrics: {}", server_->address());
  }
  timeline_ = std::make_unique<Timeline>(TimelineOptions{.path = timeline, .read_devices = [this] {
                                                           auto readings = load_.read();
                                                           if (figures_)
                                                             figures_->take_devices(readings);
                                                           return readings;
                                                         }});
}

std::string GenerateView::figures(const MusicJobProgress& progress,
                                  const std::vector<DeviceReading>& readings) {
  const double seconds = progress.seconds;
  std::string text = fmt::format("{:.3g} clips/s, {:.3g}x real time",
                                 ratio(static_cast<double>(made(progress)), seconds),
                                 ratio(progress.sound_seconds, seconds));
  std::string busy;
  for (const DeviceReading& reading : readings)
    if (reading.utilisation >= 0) busy += fmt::format(" {:.0f} %", 100 * reading.utilisation);
  if (busy.empty()) {  // before the first reading, or where the driver has no figure
    for (const MusicJobProgress::Device& device : progress.devices)
      busy += fmt::format(" {:.0f} %", 100 * device.busy_share);
  }
  if (!busy.empty()) text += ", busy" + busy;
  const auto lost = std::ranges::count_if(progress.devices, &MusicJobProgress::Device::lost);
  if (lost > 0) text += fmt::format(", {} lost", lost);
  if (progress.skipped > 0) text += fmt::format(", {} done before", progress.skipped);
  if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
  return text;
}

void GenerateView::update(const MusicJobProgress& progress) {
  const std::lock_guard lock(mutex_);
  last_ = progress;
  if (figures_) figures_->take_clips(progress, device_names_);
  int64_t done = progress.done;
  if (!terminal_wants_progress() && done < progress.total) done -= done % every_;
  // What was there before tells nothing about how long the rest takes.
  if (!line_) {
    line_ = std::make_unique<Progress>(progress.skipped, progress.total, every_, "clip");
    shown_ = progress.skipped;
  }
  if (done <= shown_) return;
  shown_ = done;
  line_->update(done, figures(progress, timeline_->latest()));
}

void GenerateView::close() {
  const std::lock_guard lock(mutex_);
  line_.reset();
  server_.reset();
  if (!timeline_) return;
  devices_ = timeline_->summary();
  timeline_.reset();
}

std::vector<ClipEntry> clip_entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> parts;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("manifest.") && name.ends_with(".jsonl")) parts.push_back(file.path());
  }
  // The parts of jobs that have not ended are newer than the whole, and sort before it.
  std::ranges::sort(parts, std::greater<>{});
  std::vector<ClipEntry> entries;
  std::map<std::string, size_t> places;  // by file
  for (const std::filesystem::path& part : parts) {
    for (const std::string& line : split(read_file(part), '\n')) {
      auto entry = clip_entry(line);
      if (!entry) continue;
      const auto [place, added] = places.try_emplace(entry->file, entries.size());
      if (added) entries.emplace_back();
      entries[place->second] = std::move(*entry);
    }
  }
  return entries;
}

void print_summary(const GenerateEnd& end, const std::vector<DeviceSummary>& devices) {
  const MusicJobProgress& progress = end.progress;
  log_info("{} {}: {} made, {} done before, {} failed", progress.total,
           progress.total == 1 ? "clip" : "clips", made(progress), progress.skipped,
           progress.failed);
  if (made(progress) > 0) {
    log_info("{:.3g} hours of sound in {} ({:.3g}x real time), {:.3g} device seconds a clip",
             progress.sound_seconds / 3600, format_seconds(end.progress.seconds),
             ratio(progress.sound_seconds, end.progress.seconds), device_seconds_a_clip(progress));
  }
  if (progress.clipped > 0)
    log_warning("{} clips pass full scale, which 16 bits do not hold; generation.format=wav does",
                progress.clipped);
  for (const DeviceSummary& device : devices) log_info("  {}", to_string(device));
  constexpr double worth_saying = 0.02;  // of the time of all devices
  constexpr double long_enough = 10;     // seconds: a run's first batch always waits
  if (progress.seconds < long_enough) return;
  const double devices_time = progress.seconds * static_cast<double>(progress.devices.size());
  const auto waited = [&](double seconds, const char* what) {
    if (seconds > worth_saying * devices_time)
      log_info("devices waited {:.1f} % of the time for {}", 100 * seconds / devices_time, what);
  };
  waited(progress.waited_for_captions, "captions (data.num_workers, data.prefetch_factor)");
  waited(progress.waited_for_disk, "the disk (generation.writers)");
}

std::string end_json(const GenerateRequest& request, const GeneratePlan& plan,
                     const GenerateEnd& end) {
  const MusicJobProgress& progress = end.progress;
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    const MusicJobProgress::Device work =
        i < progress.devices.size() ? progress.devices[i] : MusicJobProgress::Device{};
    devices.push_back({{"name", plan.devices[i]->name()},
                       {"clips", work.clips},
                       {"busy_seconds", work.busy_seconds},
                       {"lost", work.lost}});
  }
  const bool one = !request.output_file.empty();
  nlohmann::ordered_json document;
  document[one ? "output" : "folder"] = one ? request.output_file : end.folder.string();
  if (!one) document["manifest"] = (end.folder / "manifest.jsonl").string();
  document.update({{"clips", progress.total},
                   {"made", made(progress)},
                   {"skipped", progress.skipped},
                   {"failed", progress.failed},
                   {"batch_size", plan.plan.batch_size},
                   {"seconds", progress.sound_seconds},
                   {"hours", progress.sound_seconds / 3600},
                   {"work_seconds", end.progress.seconds},
                   {"times_real_time", ratio(progress.sound_seconds, end.progress.seconds)},
                   {"device_seconds", progress.device_seconds},
                   {"device_seconds_a_clip", device_seconds_a_clip(progress)},
                   {"devices", devices}});
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string write_music_report(const GenerateRequest& request, const GeneratePlan& plan,
                               const GenerateEnd& end, const std::filesystem::path& timeline) {
  try {
    MusicReport report{.title = fmt::format("{}: {}", request.model_name,
                                            end.folder.lexically_normal().filename().string()),
                       .state = end.state,
                       .state_words = end.state_words,
                       .clips = report_clips(end.folder),
                       .plan = plan_rows(request, plan),
                       .settings = request.settings_yaml};
    report.tiles = report_tiles(end, report.clips);
    for (const MusicPlanDevice& device : plan.planned_devices)
      report.hardware.emplace_back(device.name, device.hardware);
    if (std::filesystem::exists(timeline)) report.timeline = parse_timeline(read_file(timeline));
    const std::filesystem::path path = end.folder / "report.html";
    write_file_atomically(path, make_music_report(report));
    return path.string();
  } catch (const std::exception& error) {  // the clips are safe
    log_warning("no report of this run: {}", explain(error).sentence);
    return "";
  }
}

}  // namespace tandem
