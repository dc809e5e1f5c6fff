// Rules about what comes between decoding and the step: preparation, copies, queues.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnose/feed_rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem::rules {

Diagnosis data_device(const Figures& figures, const Circumstances& now, const Stages& stages) {
  Diagnosis found{.verdict = Bottleneck::data_device_bound};
  found.evidence.push_back({"prepare_seconds_per_batch", figures.prepare,
                            fmt::format("preparing a batch takes {} on the data device, a step {}",
                                        milliseconds(figures.prepare), milliseconds(stages.step))});
  const double others = std::max({stages.host, stages.move, stages.step});
  const double turns = stages.step + figures.prepare_on_model;
  if (another_gpu_may_prepare(now)) {
    found.remedy = {.settings = {"data.data_gpu=0", "data.model_gpu=1"},
                    .why = "a GPU of its own prepares while the other trains"};
    found.expected_gain = gain_of(figures, std::max(others, figures.prepare));
  } else if (!now.data_on_model && figures.prepare_on_model > 0 &&
             gain_of(figures, turns) >= limits::worth_changing) {
    found.evidence.push_back(
        {"prepare_on_model_seconds_per_batch", figures.prepare_on_model,
         fmt::format("the model's device would take {}", milliseconds(figures.prepare_on_model))});
    found.remedy = {.settings = {"data.data_gpu=null", "data.model_gpu=null",
                                 fmt::format("training.visible_gpus={}",
                                             now.config.data.model_gpu.value_or("0"))},
                    .why = "the model's device prepares its batches faster than the data device"};
    found.expected_gain = gain_of(figures, turns);
  } else {
    found.remedy = less_preparation(now);
    found.expected_gain = gain_of(figures, others);
  }
  return found;
}

Diagnosis transfer(const Figures& figures, const Circumstances& now, const Stages& stages) {
  Diagnosis found{.verdict = Bottleneck::transfer_bound};
  found.evidence.push_back(
      {"transfer_bytes_per_second", figures.batch_bytes / std::max(figures.move, 1e-9),
       fmt::format("a batch of {:.1f} MB takes {} to the model's device ({:.2f} GB/s), a step {}",
                   figures.batch_bytes / 1e6, milliseconds(figures.move),
                   figures.batch_bytes / std::max(figures.move, 1e-9) / 1e9,
                   milliseconds(stages.step))});
  found.remedy = faster_copies(now);
  const double beside = copies_on_demand(now) ? figures.move : 0;  // no longer in turn
  found.expected_gain =
      gain_of(figures, std::max({stages.host, stages.prepare, stages.step, beside}));
  return found;
}

Diagnosis short_queue(const Figures& figures, const Circumstances& now, const Stages& stages) {
  Diagnosis found{.verdict = Bottleneck::queue_too_small, .expected_gain = wait_share(figures)};
  found.evidence.push_back(
      {"queue_capacity", static_cast<double>(now.queue_capacity),
       fmt::format("the queue holds {} batches; stages take {}, {} and {} a batch, a step {}",
                   now.queue_capacity, milliseconds(stages.host), milliseconds(stages.prepare),
                   milliseconds(stages.move), milliseconds(stages.step))});
  found.evidence.push_back(
      {"step_p99", figures.fed.p99,
       fmt::format("one step in a hundred takes {}, the middle one {}",
                   milliseconds(figures.fed.p99), milliseconds(figures.fed.median))});
  const DataConfig& data = now.config.data;
  if (static_cast<int>(now.queue_capacity) < limits::short_queue) {
    found.remedy = {.settings = {fmt::format("data.buffer_size={}", limits::usual_queue)},
                    .why = "a longer queue hides a batch that comes late"};
  } else if (!data.enhanced_gpu_prefetch) {
    found.remedy = {.settings = {"data.enhanced_gpu_prefetch=true"},
                    .why = "the queues then grow with the jitter they see"};
  } else {
    found.remedy = {.settings = {fmt::format("data.buffer_size={}", 2 * data.buffer_size),
                                 fmt::format("data.prefetch_factor={}", 2 * data.prefetch_factor)},
                    .why = "longer queues hide a batch that comes late"};
  }
  return found;
}

}  // namespace tandem::rules
