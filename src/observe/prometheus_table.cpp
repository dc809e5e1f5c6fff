// The table of metrics: names, units and help, and where each figure comes from.

#include "observe/prometheus_figures.h"

namespace tandem {
namespace {

class Table {
 public:
  void gauge(const char* name, const char* help, std::vector<PrometheusSample> samples) {
    metrics.push_back({name, PrometheusMetric::gauge, help, std::move(samples)});
  }
  void gauge(const char* name, const char* help, double value) {
    gauge(name, help, std::vector<PrometheusSample>{{.value = value}});
  }
  void counter(const char* name, const char* help, std::vector<PrometheusSample> samples) {
    metrics.push_back({name, PrometheusMetric::counter, help, std::move(samples)});
  }
  void counter(const char* name, const char* help, double value) {
    counter(name, help, std::vector<PrometheusSample>{{.value = value}});
  }
  std::vector<PrometheusMetric> metrics;
};

double number(int64_t count) { return static_cast<double>(count); }

void add_process(Table& table, const FigureValues& values) {
  table.gauge("tandem_build_info", "Always 1; its labels name the build.",
              {{.labels = values.build, .value = 1}});
  table.gauge("tandem_run_info", "Always 1; its labels name the run.",
              {{.labels = values.run, .value = 1}});
  table.counter("process_cpu_seconds_total", "CPU time of the process.", values.process_seconds);
  table.gauge("process_resident_memory_bytes", "Memory of the process that is not swapped out.",
              static_cast<double>(values.process_bytes));
  table.gauge("process_start_time_seconds", "When the run began, since 1970.",
              values.process_start);
}

void add_devices(Table& table, const FigureValues& values) {
  std::vector<PrometheusSample> busy, used, limit;
  for (const DeviceReading& device : values.devices) {
    const PrometheusLabels labels = {{"device", device.name}};
    if (device.utilisation >= 0) busy.push_back({labels, device.utilisation});
    used.push_back({labels, static_cast<double>(device.used)});
    if (device.limit > 0) limit.push_back({labels, static_cast<double>(device.limit)});
  }
  table.gauge("tandem_device_utilization_ratio",
              "How busy the device is, 0 to 1: of a GPU the driver's figure for the whole card.",
              std::move(busy));
  table.gauge("tandem_device_memory_bytes", "Memory the run holds on the device.", std::move(used));
  table.gauge("tandem_device_memory_limit_bytes", "Memory the run may hold on the device.",
              std::move(limit));
}

void add_queues(Table& table, const FigureValues& values) {
  std::vector<PrometheusSample> ready, items, put, get, empty;
  for (const QueueFigure& queue : values.queues) {
    const PrometheusLabels labels = {{"queue", queue.reading.name}};
    if (queue.ready) ready.push_back({labels, *queue.ready});
    items.push_back({labels, static_cast<double>(queue.reading.items)});
    put.push_back({labels, queue.reading.put_wait});
    get.push_back({labels, queue.reading.get_wait});
    empty.push_back({labels, queue.reading.empty_time});
  }
  table.gauge("tandem_queue_ready_ratio",
              "Share of the last half second in which the queue was not empty.", std::move(ready));
  table.counter("tandem_queue_items_total", "Items that went through the queue.", std::move(items));
  table.counter("tandem_queue_put_wait_seconds_total", "Time producers waited for a free place.",
                std::move(put));
  table.counter("tandem_queue_get_wait_seconds_total", "Time consumers waited for an item.",
                std::move(get));
  table.counter("tandem_queue_empty_seconds_total", "Time the queue stood empty.",
                std::move(empty));
}

void add_step(Table& table, const StepReport& step) {
  table.gauge("tandem_train_loss", "Loss of the last step.", step.loss);
  std::vector<PrometheusSample> terms;
  for (const auto& [name, value] :
       std::map<std::string, double>(step.terms.begin(), step.terms.end()))
    terms.push_back({{{"term", name}}, value});
  table.gauge("tandem_train_loss_term", "Parts of the loss and measures of the last step.",
              std::move(terms));
  table.gauge("tandem_train_gradient_norm", "Norm of the gradient before clipping.",
              step.gradient_norm);
  table.gauge("tandem_train_learning_rate", "Learning rate of the last step.", step.learning_rate);
  table.gauge("tandem_train_tokens_per_second", "Tokens trained on, over all replicas.",
              step.tokens_per_second);
  if (step.audio_seconds_per_second > 0)
    table.gauge("tandem_train_audio_seconds_per_second", "Sound trained on, over all replicas.",
                step.audio_seconds_per_second);
  table.gauge("tandem_train_data_wait_ratio",
              "Share of the last step's time spent waiting for data.", step.wait_share);
  table.counter("tandem_train_graph_captures_total", "CUDA graphs captured.",
                number(step.captures));
}

void add_training(Table& table, const FigureValues& values) {
  if (!values.trains) return;
  table.gauge("tandem_train_step", "Steps done.",
              number(values.step ? values.step->step : values.first_step));
  table.gauge("tandem_train_planned_steps", "Steps the run has when it is done.",
              number(values.total_steps));
  if (values.step) {
    add_step(table, *values.step);
    table.gauge("tandem_train_last_step_timestamp_seconds", "When the last step was reported.",
                values.step_time);
  }
  if (values.seconds_left)
    table.gauge("tandem_train_remaining_seconds", "Time left at the speed since the run began.",
                *values.seconds_left);
  if (values.validation) {
    table.gauge("tandem_train_validation_loss", "Loss of the last validation.",
                values.validation->loss);
    table.gauge("tandem_train_validation_step", "Step of the last validation.",
                number(values.validation->step));
  }
  table.counter("tandem_train_skipped_steps_total",
                "Steps that changed nothing, for a gradient that was not usable.",
                number(values.skipped));
  table.counter("tandem_train_checkpoints_total", "Checkpoints written.",
                number(values.checkpoints));
  std::vector<PrometheusSample> events;
  for (const auto& [kind, count] : values.events)
    events.push_back({{{"kind", kind}}, number(count)});
  table.counter("tandem_train_events_total", "What happened beside the steps.", std::move(events));
}

void add_clips(Table& table, const FigureValues& values) {
  if (!values.clips) return;
  const MusicJobProgress& clips = *values.clips;
  table.gauge("tandem_generate_planned_clips", "Clips this job has when it is done.",
              number(clips.total));
  table.counter("tandem_generate_clips_done_total",
                "Clips dealt with: made, failed, or there before.", number(clips.done));
  table.counter("tandem_generate_clips_failed_total", "Clips that could not be made.",
                number(clips.failed));
  table.counter("tandem_generate_clips_skipped_total", "Clips that were there before.",
                number(clips.skipped));
  table.counter("tandem_generate_sound_seconds_total", "Sound made.", clips.sound_seconds);
  table.counter("tandem_generate_caption_wait_seconds_total",
                "Time devices stood without prepared clips.", clips.waited_for_captions);
  table.counter("tandem_generate_disk_wait_seconds_total", "Time engines waited for the writers.",
                clips.waited_for_disk);
  std::vector<PrometheusSample> made, busy, lost;
  for (size_t i = 0; i < clips.devices.size() && i < values.clip_devices.size(); ++i) {
    const PrometheusLabels labels = {{"device", values.clip_devices[i]}};
    made.push_back({labels, number(clips.devices[i].clips)});
    busy.push_back({labels, clips.devices[i].busy_seconds});
    lost.push_back({labels, clips.devices[i].lost ? 1.0 : 0.0});
  }
  table.counter("tandem_generate_device_clips_total", "Clips made by the device.", std::move(made));
  table.counter("tandem_generate_device_busy_seconds_total", "Time the device made clips.",
                std::move(busy));
  table.gauge("tandem_generate_device_lost", "1 when the device failed and is used no more.",
              std::move(lost));
}

}  // namespace

std::vector<PrometheusMetric> metrics_of(const FigureValues& values) {
  Table table;
  add_process(table, values);
  add_training(table, values);
  add_clips(table, values);
  add_devices(table, values);
  add_queues(table, values);
  return std::move(table.metrics);
}

}  // namespace tandem
