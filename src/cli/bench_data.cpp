// `tandem bench data` and `tandem bench step`: the feed, alone and beside a stand-in for training.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench_list.h"
#include "data/feed/speech_feed.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "observe/data_bench.h"
#include "observe/peer_program.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double shortest = 0.001;

std::string data_of(const BenchJob& job, const char* name) {
  const std::string data = job.arguments.value("--data");
  if (!data.empty()) return data;
  throw Error(ErrorKind::usage, "`tandem bench " + std::string(name) + "` needs --data DIR")
      .hint("--data assets/demo");
}

double seconds_of(const BenchJob& job) {
  return number_option(job.arguments, "--seconds", "10", shortest);
}

PeerBench run_peer(const BenchJob& job) {
  const DataConfig& data = job.config.data;
  return bench_peer({.python = reference_python(),
                     .script = peer_script("speech_loader.py"),
                     .data = data_of(job, "data"),
                     .tokenizer = data.tokenizer.value_or(""),
                     .mel = data.mel,
                     .workers = data.num_workers,
                     .batch_size = data.batch_size,
                     .sample_rate = data.sample_rate,
                     .seconds = seconds_of(job)});
}

nlohmann::json stage_of(const std::optional<PeerBench>& peer, const std::string& name) {
  if (!peer) return {};
  for (const StageRate& stage : peer->stages)
    if (stage.name == name) return stage.clips_per_second;
  return {};
}

std::vector<Figure> clips(double ours, const nlohmann::json& theirs) {
  return against_peer(
      {.name = "clips_per_second", .unit = "clips/s", .title = "tandem", .values = {ours}},
      "peer_clips_per_second", theirs);
}

Figure fact(const char* name, const char* unit, double value) {
  std::string title = name;
  std::ranges::replace(title, '_', ' ');
  return {.name = name, .unit = unit, .title = title, .better = Better::neither, .values = {value}};
}

BenchRow step_row(const StepBench& steps, const std::string& label) {
  return {.path = {"steps"},
          .table = "step beside training",
          .label = label,
          .figures = {{.name = "replay_step",
                       .unit = "s",
                       .title = "replayed",
                       .better = Better::neither,
                       .values = {steps.replay_step}},
                      {.name = "fed_step",
                       .unit = "s",
                       .title = "fed",
                       .better = Better::lower,
                       .values = {steps.fed_step}},
                      {.name = "times_replay",
                       .unit = "",
                       .title = "fed / replayed",
                       .better = Better::lower,
                       .numerator = "fed_step",
                       .denominator = "replay_step"},
                      {.name = "wait_share",
                       .unit = "share",
                       .title = "waiting",
                       .better = Better::neither,
                       .values = {steps.wait_share}},
                      fact("late", "", static_cast<double>(steps.late))}};
}

BenchRow queue_row(const char* name, const QueueCounters& queue) {
  return {.path = {"queues", name},
          .table = "queue",
          .label = name,
          .figures = {fact("batches", "", static_cast<double>(queue.items)),
                      fact("put_wait", "s", queue.put_wait), fact("get_wait", "s", queue.get_wait),
                      fact("empty_time", "s", queue.empty_time)}};
}

std::string step_label(const BenchJob& job, const char* otherwise) {
  return job.arguments.value("--step-ms", otherwise) + " ms";
}

void check_data(const BenchJob& job) {
  data_of(job, "data");
  seconds_of(job);
  number_option(job.arguments, "--step-ms", "0", 0);
}

BenchRecord run_data(const BenchJob& job) {
  if (job.first) announce_loading(job.config.data);
  const double step = number_option(job.arguments, "--step-ms", "0", 0);
  const DataBench bench = bench_data({.data = data_of(job, "data"),
                                      .settings = job.config.data,
                                      .seed = static_cast<uint64_t>(job.config.training.seed),
                                      .seconds = seconds_of(job),
                                      .data_device = job.data_device,
                                      .model_device = job.model_device,
                                      .step_seconds = step / 1000});
  std::optional<PeerBench> peer;
  if (job.arguments.has("--peer")) peer = run_peer(job);
  BenchRecord record;
  record.facts.emplace_back("device", bench.device);
  if (peer) record.facts.emplace_back("peer", peer->name);
  record.rows.push_back(
      {.table = "stage",
       .label = "whole",
       .figures = clips(bench.clips_per_second,
                        peer ? nlohmann::json(peer->clips_per_second) : nlohmann::json())});
  record.rows.push_back({.figures = {fact("clips", "", static_cast<double>(bench.clips)),
                                     fact("seconds", "s", bench.seconds),
                                     fact("times_real_time", "", bench.times_real_time),
                                     fact("first_batch_seconds", "s", bench.first_batch_seconds),
                                     fact("padding", "share", bench.padding),
                                     fact("bad_clips", "", static_cast<double>(bench.bad_clips))}});
  for (const StageRate& stage : bench.stages)
    record.rows.push_back({.path = {"stages", stage.name},
                           .table = "stage",
                           .label = stage.name + " (one thread)",
                           .figures = clips(stage.clips_per_second, stage_of(peer, stage.name))});
  if (bench.steps) record.rows.push_back(step_row(*bench.steps, step_label(job, "0")));
  record.rows.push_back(queue_row("loaded", bench.queues.loaded));
  record.rows.push_back(queue_row("prepared", bench.queues.prepared));
  record.rows.push_back(queue_row("moved", bench.queues.moved));
  return record;
}

void check_step(const BenchJob& job) {
  data_of(job, "step");
  seconds_of(job);
  number_option(job.arguments, "--step-ms", "20", shortest);
}

BenchRecord run_step(const BenchJob& job) {
  if (job.first) announce_loading(job.config.data);
  const double step = number_option(job.arguments, "--step-ms", "20", shortest) / 1000;
  LogicalDevice& data = DeviceRegistry::get().find(job.data_device);
  LogicalDevice& model = DeviceRegistry::get().find(job.model_device);
  SpeechFeed speech(data_of(job, "step"), job.config.data,
                    static_cast<uint64_t>(job.config.training.seed), "",
                    data.kind() == DeviceKind::cpu);
  FeedOptions feeding = feed_options(job.config.data);
  feeding.end_batch = INT64_MAX;
  const StepBench steps = bench_steps(speech, feeding, data, model, step, seconds_of(job));
  BenchRecord record;
  record.facts.emplace_back("device", job.model_device);
  // The floor is the step that waits for nothing.
  record.rows.push_back({.figures = {{.name = "tandem",
                                      .unit = "steps/s",
                                      .better = Better::neither,
                                      .values = {1 / steps.fed_step}},
                                     fact("floor", "steps/s", 1 / steps.replay_step)}});
  record.rows.push_back(step_row(steps, step_label(job, "20")));
  return record;
}

}  // namespace

Bench data_bench() {
  return {.name = "data",
          .summary = "decode, resample, mel, tokens: clips a second, whole and by stage",
          .reads_settings = true,
          .check = check_data,
          .run = run_data};
}

Bench step_bench() {
  return {.name = "step",
          .summary = "the feed beside training: a fed step against one that waits for nothing",
          .reads_settings = true,
          .check = check_step,
          .run = run_step};
}

}  // namespace tandem
