// Does the step wait for data, and for which stage of the feed?
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnose/feed_rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem::rules {

namespace {

void prove(Diagnosis& found, const Figures& figures) {
  found.evidence.insert(
      found.evidence.begin(),
      {"wait_share", wait_share(figures),
       fmt::format("{} of a step waits for data ({} of {})", percent(wait_share(figures)),
                   milliseconds(lost_wait(figures)), milliseconds(figures.fed.mean))});
  for (const QueueFigures& queue : figures.queues)
    found.evidence.push_back({queue.name + "_ready", queue.ready,
                              fmt::format("the queue of {} batches was ready {} of the time",
                                          queue.name, percent(queue.ready))});
  if (figures.fed.period > 0)
    found.evidence.push_back({"period", static_cast<double>(figures.fed.period),
                              fmt::format("step times swing by {} with a period of {} steps",
                                          percent(figures.fed.swing), figures.fed.period)});
  const bool whole_step = found.verdict == Bottleneck::data_device_bound ||
                          found.verdict == Bottleneck::transfer_bound ||
                          found.verdict == Bottleneck::too_many_workers;
  found.named = whole_step ? headspace(figures)
                           : Evidence{"wait_share", wait_share(figures),
                                      "share of a step that waits for data"};
}

// A run's record has no stages: the queues tell between which two the batches run out.
Diagnosis recorded_stage(const Figures& figures, const Circumstances& now) {
  const auto ready = [&](const char* name) {
    const QueueFigures* queue = figures.queue(name);
    return queue ? queue->ready : 1.0;
  };
  const DataConfig& data = now.config.data;
  Diagnosis found{.expected_gain = wait_share(figures)};
  if (figures.queues.empty() || ready("loaded") < limits::queue_starves) {
    if (data.num_workers < static_cast<int64_t>(limits::cores_for_workers * figures.cores)) {
      found.verdict = Bottleneck::too_few_workers;
      found.remedy = more_workers(std::min<int64_t>(figures.cores, 2 * data.num_workers),
                                  "the host's queue runs empty while cores are free");
    } else {
      found.verdict = Bottleneck::decode_bound;
      found.remedy = data.use_native_loading
                         ? less_decoding(now, "shows the formats and how fast the disk is")
                         : Remedy{.settings = {"data.use_native_loading=true"},
                                  .why = "the native reader is faster than the general decoder"};
    }
  } else if (ready("prepared") < limits::queue_starves) {
    found.verdict = Bottleneck::data_device_bound;
    found.remedy = another_gpu_may_prepare(now)
                       ? Remedy{.settings = {"data.data_gpu=0", "data.model_gpu=1"},
                                .why = "a GPU of its own prepares while the other trains"}
                       : less_preparation(now);
  } else if (!now.data_on_model && ready("moved") < limits::queue_starves) {
    found.verdict = Bottleneck::transfer_bound;
    found.remedy = faster_copies(now);
  } else {
    found = short_queue(figures, now, {.step = figures.fed.median});
  }
  return found;
}

}  // namespace

Found starving(const Figures& figures, const Circumstances& now) {
  if (figures.fed.count == 0 || wait_share(figures) < limits::worth_changing) return std::nullopt;
  Diagnosis found;
  const Stages stages = stages_of(figures, now);
  const double slowest = std::max({stages.host, stages.prepare, stages.move});
  if (figures.recorded) {
    found = recorded_stage(figures, now);
  } else if (slowest < limits::keeps_up * stages.step) {
    // A queue that was not empty did not keep anybody waiting.
    const QueueFigures* read = figures.queue("moved");
    if (read && 1 - read->ready < 0.5 * wait_share(figures)) return std::nullopt;
    if (disturbed(figures)) return std::nullopt;
    found = short_queue(figures, now, stages);
  } else if (slowest == stages.move) {
    found = transfer(figures, now, stages);
  } else if (slowest == stages.prepare) {
    found = data_device(figures, now, stages);
  } else if (waits_for_disk(figures, now, stages)) {
    found = slow_storage(figures, now, stages);
  } else {
    found = host_bound(figures, now, stages);
  }
  prove(found, figures);
  return found;
}

}  // namespace tandem::rules
