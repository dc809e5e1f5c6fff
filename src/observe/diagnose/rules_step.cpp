// Rules about the step itself: captures, syncs, launches, computing.
#include <fmt/format.h>

#include <algorithm>

#include "device/logical_device.h"
#include "observe/diagnose/rules.h"
#include "observe/diagnose/thresholds.h"
#include "train/rules/fused_step.h"
#include "util/text.h"

namespace tandem::rules {
namespace {

// A replayed step's gain as a share of the fed step's time: what is waited for stays.
double of_fed(const Figures& figures, double share_of_replay) {
  if (figures.fed.mean <= 0 || figures.replay.count == 0) return share_of_replay;
  return share_of_replay * std::min(1.0, figures.replay.median / figures.fed.mean);
}

double clips_of(const Figures& figures) {
  return std::max(1.0, figures.rows) * figures.batches_a_step;
}

bool any_real(const Figures& figures) {
  return std::ranges::any_of(figures.devices, [](const DeviceFigures& device) {
    return device.holds_model && device.real;
  });
}

// Of the devices that hold the model the busiest, 0 to 1; -1: not known.
double busiest_model(const Figures& figures) {
  double busy = -1;
  for (const DeviceFigures& device : figures.devices)
    if (device.holds_model && device.utilisation.count >= limits::few_readings)
      busy = std::max(busy, device.utilisation.mean);
  return busy;
}

bool captured(const TrainingConfig& training) {
  return training.enable_graph_mode && !training.enable_eager_debug;
}

// How many can work side by side. Simulated devices compute on the host's cores: each more needs as
// many of them as the first has.
int usable_gpus(const Figures& figures, const Circumstances& now) {
  if (any_real(figures)) return now.visible_gpus;
  if (figures.core_load < 0) return std::min(now.visible_gpus, figures.cores);
  const double used = std::max(0.1, figures.core_load * figures.cores);
  const double others = std::max(0.0, figures.others_load) * figures.cores;
  const double more = (figures.cores - used - others) / (limits::keeps_up * used);
  return std::clamp(1 + static_cast<int>(std::max(0.0, more)), 1, std::max(1, now.visible_gpus));
}

std::string first_gpus(const Figures& figures, int count) {
  std::vector<std::string> names;
  for (const DeviceFigures& device : figures.devices)
    if (device.name.starts_with("/GPU") && static_cast<int>(names.size()) < count)
      names.push_back(std::to_string(device.index));
  return join(names, ",");
}

}  // namespace

Found recapturing(const Figures& figures, const Circumstances& now) {
  if (figures.captures <= limits::captures_a_step || figures.captures_end) return std::nullopt;
  Diagnosis found{.verdict = Bottleneck::recapturing};
  const double lost = figures.captures * figures.capture_cost;
  const double whole = figures.fed.mean + (figures.fed_is_settled ? lost : 0);
  if (whole > 0 && lost < limits::worth_changing * whole) return std::nullopt;
  found.evidence = {
      {"captures_per_step", figures.captures,
       fmt::format("{} of the steps meet a shape that is not captured yet, after the warm-up",
                   percent(figures.captures))},
      {"capture_seconds", figures.capture_cost,
       fmt::format("a step that captures takes {} longer", milliseconds(figures.capture_cost))}};
  found.named = {"captures_per_step", figures.captures, "share of steps not yet captured"};
  found.expected_gain = whole > 0 ? std::clamp(lost / whole, 0.0, 1.0) : 0;
  const DataConfig& data = now.config.data;
  if (data.batch_seconds) {
    found.remedy = {.settings = {"data.batch_seconds=null"},
                    .why = "batches of one number of clips have fewer shapes"};
  } else if (data.buckets > 1) {
    found.remedy = {
        .settings = {fmt::format("data.buckets={}", std::max<int64_t>(1, data.buckets / 4))},
        .why = "fewer shapes of batches, each captured once"};
  } else {
    found.remedy = {.settings = {"training.enable_graph_mode=false"},
                    .why = "with shapes that never come again, capturing only costs"};
  }
  return found;
}

Found host_sync(const Figures& figures, const Circumstances& now) {
  if (figures.recorded || figures.replay.count == 0) return std::nullopt;
  const double step = figures.replay.median;
  const bool debugging = now.config.training.enable_eager_debug && figures.unwatched_replay > 0;
  // On a GPU whoever launches faster than it works sleeps as well, when its queue is full.
  const bool asleep =
      figures.queues_work && !any_real(figures) && figures.launch.asleep() >= 0.3 * step;
  if (figures.syncs < 1 && !asleep) return std::nullopt;
  // The host's own part of a step runs beside the device's, if nobody waits.
  const double host = any_real(figures) ? figures.operations * figures.launch_cost
                                        : figures.launch.on_core + figures.launch.in_line;
  double gain = figures.queues_work ? 1 - std::max(host, step - host) / step : 0;
  if (debugging) gain = std::max(gain, 1 - figures.unwatched_replay / step);
  if (gain < limits::worth_changing) return std::nullopt;
  Diagnosis found{.verdict = Bottleneck::host_sync, .expected_gain = of_fed(figures, gain)};
  found.evidence.push_back({"syncs_per_step", figures.syncs,
                            figures.syncs >= 1
                                ? fmt::format("{:.0f} operations a step wait for the device ({})",
                                              figures.syncs, figures.sync_names)
                                : std::string("the launching thread sleeps within the step")});
  found.evidence.push_back(
      {"launch_asleep", figures.launch.asleep(),
       fmt::format("of a step of {} the launching thread works {} and sleeps {}",
                   milliseconds(step), milliseconds(figures.launch.on_core),
                   milliseconds(figures.launch.asleep()))});
  found.named = {"replay_seconds_per_clip", step / clips_of(figures), "seconds a clip, replayed"};
  if (now.config.training.enable_eager_debug) {
    found.remedy = {.settings = {"training.enable_eager_debug=false"},
                    .why = "eager debugging looks at every tensor on the host"};
  } else {
    found.remedy = {.command = {"profile", "--num-steps", "20"},
                    .why = "shows which part of the step waits"};
  }
  return found;
}

namespace {

bool fusion_helps(TrainingConfig training) {
  if (training.stage != "gpt" || training.enable_kernel_fusion) return false;
  training.enable_kernel_fusion = true;
  return fuses_gpt_step(training, DeviceKind::cuda);
}

// `share`: of the step, in which the device waits for launches.
Diagnosis launching_costs(const Figures& figures, const Circumstances& now, double share) {
  const double step = std::max(figures.replay.median, 1e-12);
  const double operations = figures.operations * figures.launch_cost / step;
  const double host = figures.launch.on_core / step;
  Diagnosis found{.verdict = Bottleneck::launch_bound};
  found.evidence = {
      {"operations_per_step", figures.operations,
       fmt::format("a step launches {:.0f} operations one by one", figures.operations)},
      {"launch_share", share,
       fmt::format("at {:.1f} us each that is {} of the step's {}", 1e6 * figures.launch_cost,
                   percent(std::min(1.0, operations)), milliseconds(figures.replay.median))}};
  if (any_real(figures))
    found.evidence.push_back(
        {"launch_on_core", figures.launch.on_core,
         fmt::format("the threads that launch work {} of the step", percent(std::min(1.0, host)))});
  found.named = {"replay_seconds_per_clip", figures.replay.median / clips_of(figures),
                 "seconds a clip, replayed"};
  const TrainingConfig& training = now.config.training;
  if (any_real(figures) && !captured(training)) {
    found.remedy.settings = {"training.enable_graph_mode=true"};
    if (training.enable_eager_debug)
      found.remedy.settings.emplace_back("training.enable_eager_debug=false");
    found.remedy.why = "one launch replays the whole step";
    found.expected_gain = of_fed(figures, share * (1 - limits::graph_launch_share));
  } else if (any_real(figures) && fusion_helps(training)) {
    found.remedy = {.settings = {"training.enable_kernel_fusion=true"},
                    .why = "fused kernels are fewer"};
    found.expected_gain = of_fed(figures, share / 2);
  } else {
    // Twice the clips for the same launches.
    found.remedy = {.settings = {fmt::format("data.batch_size={}", 2 * now.config.data.batch_size)},
                    .why = "the same operations then serve twice the clips"};
    found.expected_gain = of_fed(figures, share / 2);
  }
  return found;
}

}  // namespace

Found launch_bound(const Figures& figures, const Circumstances& now) {
  if (figures.recorded || figures.replay.count == 0) return std::nullopt;
  const double step = std::max(figures.replay.median, 1e-12);
  const double operations = figures.operations * figures.launch_cost / step;
  // Kernels of our own are no operations; who launches them one by one works all the time, where
  // one that is ahead of its GPU sleeps.
  const double host = any_real(figures) ? figures.launch.on_core / step : 0;
  const bool host_is_behind =
      host >= limits::launching_all_the_time && busiest_model(figures) < limits::never_idle;
  const double share = std::min(1.0, std::max(operations, host_is_behind ? host : 0));
  if (share < limits::launch_share) return std::nullopt;
  return launching_costs(figures, now, share);
}

Found idle_gpu(const Figures& figures, const Circumstances& now) {
  if (figures.recorded || figures.replay.count == 0 || !any_real(figures)) return std::nullopt;
  const double busy = busiest_model(figures);
  if (busy < 0 || busy >= limits::busy || wait_share(figures) >= limits::worth_changing)
    return std::nullopt;
  // With one launch a step, whoever keeps the host from it is to blame where there is somebody.
  if (captured(now.config.training) && disturbed(figures)) return std::nullopt;
  Diagnosis found = launching_costs(figures, now, 1 - busy);
  found.evidence.insert(
      found.evidence.begin(),
      {"utilisation", busy,
       fmt::format("the model's device is {} busy, and {} of a step waits for data: the rest of "
                   "the time it waits for the host",
                   percent(busy), percent(wait_share(figures)))});
  return found;
}

Found compute_bound(const Figures& figures, const Circumstances& now) {
  const TrainingConfig& training = now.config.training;
  const double busy = busiest_model(figures);
  const auto models = std::ranges::count_if(figures.devices, &DeviceFigures::holds_model);
  if (busy >= 0 && busy < limits::busy) return std::nullopt;
  Diagnosis found{.verdict = Bottleneck::compute_bound};
  const int usable = usable_gpus(figures, now);
  const bool one_device = now.strategy == StrategyKind::one_device && models == 1;
  if (training.recompute) {
    const bool room = std::ranges::none_of(figures.devices, [](const DeviceFigures& device) {
      return device.limit > 0 && 2 * device.peak > device.limit;
    });
    if (room) {
      found.remedy = {.settings = {"training.recompute=false"},
                      .why = "there is memory to keep the activations"};
      found.expected_gain = 0.25;  // one forward pass of the four that a step then costs
    }
  }
  const bool half = training.precision == "bf16" || training.precision == "fp16";
  if (found.remedy.empty() && !half && figures.low_precision_speed > 1 + limits::worth_changing) {
    found.remedy = {.settings = {"training.precision=bf16"},
                    .why = "the device multiplies faster in bfloat16"};
    found.expected_gain = 1 - 1 / figures.low_precision_speed;
    found.evidence.push_back({"low_precision_speed", figures.low_precision_speed,
                              fmt::format("products in bfloat16 are {:.1f} times as fast as in {}",
                                          figures.low_precision_speed, training.precision)});
  }
  if (found.remedy.empty() && one_device && usable > 1 && now.config.data.batch_size >= usable) {
    found.remedy = {.settings = {"training.multi_gpu=true"},
                    .why = fmt::format("{} GPUs are there, one works", now.visible_gpus)};
    if (usable < now.visible_gpus)
      found.remedy.settings.push_back("training.visible_gpus=" + first_gpus(figures, usable));
    found.expected_gain = 1 - 1.0 / usable;
  }
  if (found.remedy.empty()) return std::nullopt;
  const double launching =
      figures.operations * figures.launch_cost / std::max(figures.fed.median, 1e-12);
  found.evidence.insert(
      found.evidence.begin(),
      {"step_seconds", figures.fed.median,
       fmt::format("a step takes {}, of which {} is waiting for data{}",
                   milliseconds(figures.fed.median), percent(wait_share(figures)),
                   figures.operations > 0
                       ? " and " + percent(std::min(1.0, launching)) + " launching operations"
                       : "")});
  if (busy >= 0)
    found.evidence.push_back(
        {"utilisation", busy, fmt::format("the model's device is {} busy", percent(busy))});
  found.named = {"seconds_per_clip", figures.fed.median / clips_of(figures), "seconds a clip"};
  return found;
}

}  // namespace tandem::rules
