#include "cli/train_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/registry.h"
#include "device/torch_errors.h"
#include "observe/report.h"
#include "observe/sample_files.h"
#include "observe/step_line.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"

namespace tandem {
namespace {

// What stands on the terminal's line beside the figures: bar, steps, and the time that is left.
size_t columns_for_figures(int64_t total_steps) {
  const size_t beside = 45 + 2 * std::to_string(total_steps).size();
  const size_t all = terminal_columns();
  return all > beside ? all - beside : 0;
}

// Indented, Markdown shows it as it is.
std::string as_code(const std::string& text) {
  std::string code = "    ";
  for (const char c : text) code += c == '\n' ? "\n    " : std::string(1, c);
  return code;
}

std::string as_table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string table = "| | |\n|---|---|\n";
  for (const auto& [name, value] : rows) table += fmt::format("| {} | {} |\n", name, value);
  return table;
}

}  // namespace

TrainResult TrainView::show(const std::function<TrainResult(const TrainHooks&)>& training) {
  serve_metrics();
  try {
    const TrainResult result = training(hooks());
    close("finish", "");
    server_.reset();
    return result;
  } catch (const std::exception& error) {
    const Explanation why = explain_with_torch(error);
    const bool told = why.kind == ErrorKind::interrupted || why.kind == ErrorKind::terminated;
    close(told ? "stop" : "fail", why.sentence);
    server_.reset();
    throw;
  }
}

// From before the model is there, so that a port that is taken costs nobody the time to load it.
void TrainView::serve_metrics() {
  if (!config_.observe.metrics_port) return;
  figures_ = std::make_unique<RunFigures>(
      PrometheusLabels{{"version", TANDEM_VERSION}, {"build", TANDEM_BUILD_TYPE}},
      PrometheusLabels{{"command", "train"}, {"stage", config_.training.stage}});
  server_ = std::make_unique<MetricsServer>(
      MetricsServerOptions{.port = *config_.observe.metrics_port,
                           .text = [figures = figures_.get()] { return figures->text(); }});
  log_info("metrics: {}", server_->address());
}

TrainHooks TrainView::hooks() {
  return {.on_start = [this](const std::string& folder, int64_t first,
                             int64_t total) { start(folder, first, total); },
          .on_step = [this](const StepReport& report) { step(report); },
          .on_checkpoint =
              [this](const std::string& path) {
                log_debug("saved {}", path);
                if (figures_) figures_->take_checkpoint();
              },
          .on_sample = [this](const SampleReport& report) { sample(report); },
          .on_event = [this](int64_t step, const std::string& kind,
                             const std::string& text) { event(step, kind, text); },
          .on_plan = [this](const auto& rows) { plan(rows); },
          .on_feed =
              [this](std::function<std::vector<QueueReading>()> read) {
                if (figures_) read = figures_->watched(std::move(read));
                if (timeline_) timeline_->watch_queues(std::move(read));
              }};
}

void TrainView::start(const std::string& folder, int64_t first, int64_t total) {
  close("finish", "");  // the stage before, where one training has several
  folder_.clear();
  validation_.reset();
  const std::filesystem::path path(folder);
  metrics_ = std::make_unique<MetricsFile>(path / "metrics.jsonl", first);
  events_ = std::make_unique<RunEvents>(path / "events.jsonl");
  folder_ = folder;
  last_step_ = first;
  if (figures_) figures_->start(folder, first, total);
  RunEvent beginning = beginning_event(first, total);
  const Strategy strategy = setup_gpu_strategy(config_.training.multi_gpu);
  model_devices_ = strategy.replicas;
  std::vector<std::string> used = strategy.replicas;
  if (std::ranges::find(used, strategy.data_device) == used.end())
    used.insert(used.begin(), strategy.data_device);
  std::vector<LogicalDevice*> devices;
  for (const std::string& name : used) {
    devices.push_back(&DeviceRegistry::get().find(name));
    beginning.devices.emplace_back(name, devices.back()->info().hardware);
  }
  load_ = std::make_unique<DeviceLoad>(devices);
  events_->add(beginning);
  if (config_.observe.tensorboard) {
    tensorboard_ = std::make_unique<EventFile>(path / "tensorboard", first);
    if (std::filesystem::exists(path / "config.yaml"))
      tensorboard_->text(first, "settings", as_code(read_file(path / "config.yaml")));
  }
  start_timeline();
  progress_ = std::make_unique<Progress>(first, total, config_.observe.log_step);
}

void TrainView::start_timeline() {
  timeline_ = std::make_unique<Timeline>(
      TimelineOptions{.path = std::filesystem::path(folder_) / "timeline.jsonl",
                      .read_devices =
                          [load = load_.get(), figures = figures_.get()] {
                            std::vector<DeviceReading> readings = load->read();
                            if (figures) figures->take_devices(readings);
                            return readings;
                          },
                      .each_time =
                          [events = tensorboard_.get()] {
                            if (events) events->flush();
                          }});
}

void TrainView::step(StepReport report) {
  if (folder_.empty()) return;
  last_step_ = report.step;
  if (!report.validation) fill_from_devices(report);
  metrics_->add(report);
  if (figures_) figures_->take_step(report);
  if (!report.skipped.empty())
    events_->add({.kind = "skip", .step = report.step, .text = report.skipped});
  if (tensorboard_) add_scalars(report);
  if (report.validation) {
    validation_ = report.loss;
    return;
  }
  timeline_->note_steps(report.step < report.total_steps);
  progress_->update(report.step, step_figures(report, validation_ ? &*validation_ : nullptr,
                                              columns_for_figures(report.total_steps)));
}

// What the training did not say itself, from the last reading of the timeline.
void TrainView::fill_from_devices(StepReport& report) const {
  double busy = 0;
  int known = 0;
  uint64_t used = 0;
  for (const DeviceReading& reading : timeline_->latest()) {
    if (std::ranges::find(model_devices_, reading.name) == model_devices_.end()) continue;
    used = std::max(used, reading.used);
    if (reading.utilisation < 0 || reading.name.starts_with("/CPU")) continue;
    busy += reading.utilisation;
    ++known;
  }
  if (report.gpu_utilisation < 0 && known > 0) report.gpu_utilisation = busy / known;
  if (report.memory_used == 0) report.memory_used = used;
}

void TrainView::add_scalars(const StepReport& report) {
  const std::string split = report.validation ? "val/" : "train/";
  const auto add = [&](const std::string& tag, double value) {
    tensorboard_->scalar(report.step, tag, value);
  };
  add(split + "loss", report.loss);
  for (const auto& [name, value] : report.terms) add(split + name, value);
  if (report.validation) return;
  add("train/gradient_norm", report.gradient_norm);
  add("train/learning_rate", report.learning_rate);
  add("speed/tokens_per_second", report.tokens_per_second);
  add("speed/wait_share", report.wait_share);
  if (report.audio_seconds_per_second > 0)
    add("speed/audio_seconds_per_second", report.audio_seconds_per_second);
  if (report.gpu_utilisation >= 0) add("devices/utilisation", report.gpu_utilisation);
  if (report.memory_used > 0)
    add("devices/memory_gib", static_cast<double>(report.memory_used) / 0x1p30);
}

void TrainView::sample(const SampleReport& report) {
  if (folder_.empty()) return;
  const WrittenSample written = write_sample(folder_, report);
  if (!tensorboard_) return;
  const std::string tag = "samples/" + report.name;  // TensorBoard shows one kind under a tag
  if (!written.wav.empty()) {
    const auto frames = static_cast<int64_t>(report.wave.size());
    tensorboard_->audio(report.step, tag + "/sound", {report.rate, frames, written.wav});
  }
  if (!written.png.empty())
    tensorboard_->image(report.step, tag + "/mel", {written.height, written.width, written.png});
  if (!report.text.empty()) tensorboard_->text(report.step, tag + "/text", report.text);
}

void TrainView::event(int64_t step, const std::string& kind, const std::string& text) {
  if (folder_.empty()) return;
  events_->add({.kind = kind, .step = step, .text = text});
  if (figures_) figures_->take_event(kind);
  if (tensorboard_) tensorboard_->text(step, "events/" + kind, text);
}

void TrainView::plan(const std::vector<std::pair<std::string, std::string>>& rows) {
  if (folder_.empty()) return;
  events_->add({.kind = "plan", .step = last_step_, .rows = rows});
  if (tensorboard_) tensorboard_->text(last_step_, "plan", as_table(rows));
}

void TrainView::close(const std::string& kind, const std::string& text) {
  if (folder_.empty()) return;
  progress_.reset();
  if (timeline_) devices_ = timeline_->summary();
  timeline_.reset();  // its thread flushes the event file: it goes first
  tensorboard_.reset();
  try {
    if (events_) events_->add({.kind = kind, .step = last_step_, .text = text});
    write_report(folder_);
    reported_ = true;
  } catch (const std::exception& error) {  // the run itself is safe, and its end comes first
    log_warning("no report of this run: {}", explain(error).sentence);
  }
}

void TrainView::print_end() const {
  for (const DeviceSummary& device : devices_) log_info("  {}", to_string(device));
  if (reported_) log_info("report: {}/report.html", folder_);
}

}  // namespace tandem
