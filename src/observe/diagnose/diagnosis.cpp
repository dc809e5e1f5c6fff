#include "observe/diagnose/diagnosis.h"

#include <algorithm>
#include <array>
#include <utility>

#include "observe/diagnose/rules.h"
#include "observe/diagnose/thresholds.h"

namespace tandem {
namespace {

struct Named {
  Bottleneck bottleneck;
  const char* name;
  const char* sentence;
};
constexpr std::array<Named, 15> table{{
    {Bottleneck::fed, "fed", "The step has its data in time and there is nothing to gain."},
    {Bottleneck::slow_storage, "slow-storage", "The threads that read wait for the disk."},
    {Bottleneck::decode_bound, "decode-bound", "Decoding takes more cores than there are."},
    {Bottleneck::data_device_bound, "data-device-bound",
     "The device that prepares batches is slower than the step."},
    {Bottleneck::transfer_bound, "transfer-bound",
     "Batches take longer to reach the model's device than a step takes."},
    {Bottleneck::queue_too_small, "queue-too-small",
     "Every stage is fast enough on average, but the queue is too short for its jitter."},
    {Bottleneck::too_few_workers, "too-few-workers",
     "There are cores to spare, but too few threads read and decode."},
    {Bottleneck::too_many_workers, "too-many-workers",
     "The threads that read and decode take the cores from the one that launches the step."},
    {Bottleneck::launch_bound, "launch-bound",
     "The step consists of so many small operations that launching them is the work."},
    {Bottleneck::host_sync, "host-sync", "The host waits for the device in the middle of a step."},
    {Bottleneck::recapturing, "recapturing", "Steps are captured again and again."},
    {Bottleneck::compute_bound, "compute-bound",
     "The step computes all the time; it can be made shorter, the feed cannot help."},
    {Bottleneck::slow_device, "slow-device", "One device holds up the others."},
    {Bottleneck::throttled, "throttled",
     "Heat, power or a setting holds the clock of a device down."},
    {Bottleneck::memory_pressure, "memory-pressure", "A device's memory is full."},
}};

const Named& row_of(Bottleneck bottleneck) {
  return *std::ranges::find(table, bottleneck, &Named::bottleneck);
}

Diagnosis well_fed(const Figures& figures) {
  Diagnosis well{.verdict = Bottleneck::fed};
  well.evidence.push_back(
      {"wait_share", rules::wait_share(figures),
       rules::percent(rules::wait_share(figures)) + " of a step is spent waiting for data"});
  if (figures.replay.count > 0)
    well.evidence.push_back({"headspace", rules::lost_share(figures),
                             "a step that replays one batch takes " +
                                 rules::milliseconds(figures.replay.median) + ", a fed one " +
                                 rules::milliseconds(figures.fed.median)});
  for (const DeviceFigures& device : figures.devices) {
    if (!device.holds_model || device.utilisation.count == 0) continue;
    well.evidence.push_back(
        {"utilisation", device.utilisation.mean,
         device.name + " is " + rules::percent(device.utilisation.mean) + " busy"});
  }
  return well;
}

Diagnosis verdict_of(const Figures& figures, const Circumstances& now) {
  // What costs time now; of several the one that costs most. Earlier ones win ties: they explain
  // those after them.
  std::optional<Diagnosis> worst;
  for (const auto rule :
       {rules::recapturing, rules::short_of_memory, rules::throttled, rules::slow_device,
        rules::starving, rules::slowed, rules::host_sync, rules::launch_bound}) {
    rules::Found found = rule(figures, now);
    if (found && (!worst || found->expected_gain > worst->expected_gain)) worst = std::move(found);
  }
  if (worst) return *worst;
  // An idle GPU that nothing above explains; what may end the run comes before what could be
  // faster.
  for (const auto rule : {rules::idle_gpu, rules::nearly_full, rules::compute_bound})
    if (rules::Found found = rule(figures, now)) return *found;
  return well_fed(figures);
}

}  // namespace

std::string to_string(Bottleneck bottleneck) { return row_of(bottleneck).name; }
const char* sentence_of(Bottleneck bottleneck) { return row_of(bottleneck).sentence; }

std::optional<Bottleneck> bottleneck_named(const std::string& name) {
  for (const Named& row : table)
    if (name == row.name) return row.bottleneck;
  return std::nullopt;
}

const std::vector<Bottleneck>& all_bottlenecks() {
  static const std::vector<Bottleneck> all = [] {
    std::vector<Bottleneck> list;
    for (const Named& row : table) list.push_back(row.bottleneck);
    return list;
  }();
  return all;
}

Diagnosis judge(const Figures& figures, const Circumstances& now) {
  Diagnosis diagnosis = verdict_of(figures, now);
  diagnosis.sentence = sentence_of(diagnosis.verdict);
  if (!rules::disturbed(figures)) return diagnosis;
  // What a step would gain without them is not known.
  if (diagnosis.verdict == Bottleneck::fed)
    diagnosis.sentence =
        "The step has its data in time, but other programs keep it from the cores.";
  diagnosis.evidence.push_back({"launch_lateness", figures.lateness,
                                rules::percent(std::min(1.0, figures.lateness / figures.fed.mean)) +
                                    " of a step stands in line for a core"});
  diagnosis.evidence.push_back({"others_load", figures.others_load,
                                "other programs use " + rules::percent(figures.others_load) +
                                    " of the cores: measure again when they are done"});
  return diagnosis;
}

double named_figure(Bottleneck bottleneck, const Figures& figures, const Circumstances& now) {
  const double clips = std::max(1.0, figures.rows) * figures.batches_a_step;
  switch (bottleneck) {
    case Bottleneck::slow_storage:
    case Bottleneck::decode_bound:
    case Bottleneck::queue_too_small:
    case Bottleneck::too_few_workers: return rules::wait_share(figures);
    case Bottleneck::data_device_bound:
    case Bottleneck::transfer_bound:
    case Bottleneck::too_many_workers: return rules::lost_share(figures);
    case Bottleneck::launch_bound:
    case Bottleneck::host_sync: return figures.replay.median / clips;
    case Bottleneck::recapturing: return figures.captures;
    case Bottleneck::fed:
    case Bottleneck::compute_bound: return figures.fed.median / clips;
    case Bottleneck::slow_device: {
      const rules::Found slow = rules::slow_device(figures, now);
      return slow ? slow->named.value : 1;
    }
    case Bottleneck::throttled: {
      const rules::Found held = rules::throttled(figures, now);
      return held ? held->named.value : 0;
    }
    case Bottleneck::memory_pressure: return rules::fullest_share(figures);
  }
  return 0;
}

}  // namespace tandem
