// A run's folder as a training would leave it, for tests of what reads one.
#pragma once

#include <cmath>
#include <string>

#include "observe/metrics_file.h"
#include "observe/run_events.h"
#include "observe/sample_files.h"
#include "observe/timeline.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"

namespace tandem::tests {

inline StepReport made_step(int64_t step) {
  return {.step = step,
          .total_steps = 100,
          .loss = 2 + 4 * std::exp(-static_cast<double>(step) / 30),
          .gradient_norm = 0.5,
          .learning_rate = 1e-3,
          .tokens_per_second = 1000,
          .wait_share = 0.01,
          .terms = {{"text", 0.5}, {"mel_distance", 4.0 / static_cast<double>(step)}}};
}

inline void make_metrics(const TestFolder& run, int64_t first, int64_t last) {
  MetricsFile metrics(run / "metrics.jsonl", first);
  for (int64_t step = first + 1; step <= last; ++step) {
    metrics.add(made_step(step));
    if (step % 20 == 0)
      metrics.add({.step = step,
                   .validation = true,
                   .loss = 5 - static_cast<double>(step) / 50,
                   .terms = {{"accuracy", 0.5}}});
  }
}

inline void make_timeline(const TestFolder& run, const std::string& device = "/GPU:0") {
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    lines += to_json_line({.time = 1794771600.0 + i,
                           .devices = {{.name = device,
                                        .utilisation = i % 2 ? 0.8 : 0.9,
                                        .used = uint64_t{1} << 30,
                                        .limit = uint64_t{4} << 30}},
                           .queues = {{"moved", 0.75}}}) +
             "\n";
  }
  write_file_atomically(run / "timeline.jsonl", lines);
}

inline SampleReport made_sample(int64_t step, const std::string& name, const std::string& text) {
  return {.step = step,
          .name = name,
          .wave = std::vector<float>(2205, 0.1F),
          .rate = 22050,
          .mel = std::vector<float>(80 * 10, 1.0F),
          .mels = 80,
          .frames = 10,
          .text = text};
}

// 100 steps with everything there is, finished.
inline void make_whole_run(const TestFolder& run) {
  write_file_atomically(run / "config.yaml", "training:\n  stage: gpt  # <b> & \"quotes\"\n");
  RunEvents events(run / "events.jsonl");
  RunEvent beginning = beginning_event(0, 100);
  beginning.devices = {{"/GPU:0", "NVIDIA Pretend"}};
  events.add(beginning);
  events.add({.kind = "plan", .rows = {{"parameters", "518 M"}}});
  events.add({.kind = "memory", .step = 7, .text = "the micro-batch was halved"});
  make_metrics(run, 0, 100);
  make_timeline(run);
  for (const int64_t step : {50, 100}) write_sample(run.path(), made_sample(step, "a/1", "words"));
  events.add({.kind = "finish", .step = 100});
}

}  // namespace tandem::tests
