// Rules about devices: one that is slow, clocks that are held down, memory that is full.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/diagnose/rules.h"
#include "observe/diagnose/thresholds.h"
#include "util/text.h"

namespace tandem::rules {
namespace {

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Slowest {
  const DeviceFigures* device = nullptr;
  double times = 1;                 // as long as the others
  std::vector<std::string> others;  // as the user calls them
};

// By the step each takes alone; of a run's record by who is busy while the others wait for it.
Slowest slowest_of(const Figures& figures) {
  Slowest found;
  const auto measure = [&](const DeviceFigures& device) {
    return figures.recorded ? device.utilisation.mean : device.own_step;
  };
  for (const DeviceFigures& device : figures.devices)
    if (device.holds_model && measure(device) > 0 &&
        (!found.device || measure(device) > measure(*found.device)))
      found.device = &device;
  std::vector<double> others;
  for (const DeviceFigures& device : figures.devices) {
    if (!device.holds_model || &device == found.device || measure(device) <= 0) continue;
    others.push_back(measure(device));
    found.others.push_back(std::to_string(device.index));
  }
  if (others.empty()) return {};
  found.times = measure(*found.device) / median_of(others);
  return found;
}

double fullness(const DeviceFigures& device) {
  return device.limit > 0 ? static_cast<double>(device.peak) / static_cast<double>(device.limit)
                          : 0;
}

const DeviceFigures* fullest_of(const Figures& figures) {
  const DeviceFigures* found = nullptr;
  for (const DeviceFigures& device : figures.devices)
    if ((device.holds_model || device.prepares) && device.limit > 0 &&
        (!found || fullness(device) > fullness(*found)))
      found = &device;
  return found;
}

// Less of what fills the device: the queue where that is it, then activations, then the batch.
Remedy less_memory(const Figures& figures, const Circumstances& now, const DeviceFigures* device) {
  const DataConfig& data = now.config.data;
  const double queue = figures.batch_bytes * static_cast<double>(now.queue_capacity);
  const bool holds_queue = device && (device->prepares || now.data_on_model);
  if (holds_queue && queue >= limits::queue_memory * static_cast<double>(device->peak) &&
      data.buffer_size > limits::short_queue) {
    return {.settings = {fmt::format("data.buffer_size={}",
                                     std::max<int64_t>(limits::short_queue, data.buffer_size / 4))},
            .why = fmt::format("{} of it are batches that wait",
                               format_bytes(static_cast<uint64_t>(queue)))};
  }
  if (!now.config.training.recompute && now.config.training.stage == "gpt")
    return {.settings = {"training.recompute=true"},
            .why = "activations are computed again instead of kept"};
  // Every replica needs a clip.
  const int64_t replicas = std::ranges::count_if(figures.devices, &DeviceFigures::holds_model);
  const int64_t half = std::max<int64_t>({1, replicas, data.batch_size / 2});
  if (half >= data.batch_size)
    return {.command = {"profile", "--num-steps", "20"},
            .why = "shows which part of the model holds the memory"};
  return {.settings = {fmt::format("data.batch_size={}", half),
                       fmt::format("training.gradient_accumulation_steps={}",
                                   2 * now.config.training.gradient_accumulation_steps)},
          .why = "half the clips at once, the same number a step"};
}

std::string clock_words(const DeviceFigures& device) {
  if (device.clock < 0) return device.name + " does not tell its clock";
  std::string words =
      device.highest_mhz > 0
          ? fmt::format("{} runs at {:.0f} of {:.0f} MHz", device.name, device.clock_mhz,
                        device.highest_mhz)
          : fmt::format("{} runs at {} of its highest clock", device.name, percent(device.clock));
  if (!device.clock_reasons.empty()) words += " (" + join(device.clock_reasons, ", ") + ")";
  return words;
}

}  // namespace

double fullest_share(const Figures& figures) {
  const DeviceFigures* device = fullest_of(figures);
  return device ? fullness(*device) : 0;
}

Found slow_device(const Figures& figures, const Circumstances& now) {
  const Slowest slowest = slowest_of(figures);
  if (!slowest.device || slowest.times < limits::slow_device) return std::nullopt;
  // Idle GPUs of a record prove nothing while the run waits for data.
  if (figures.recorded && wait_share(figures) >= limits::worth_changing) return std::nullopt;
  Diagnosis found{.verdict = Bottleneck::slow_device};
  found.evidence.push_back(
      {"times_the_others", slowest.times,
       figures.recorded
           ? fmt::format("{} is {:.2f} times as busy as the others, which wait for it",
                         slowest.device->name, slowest.times)
           : fmt::format("a step takes {} on {}, {:.2f} times as long as on the others",
                         milliseconds(slowest.device->own_step), slowest.device->name,
                         slowest.times)});
  found.named = {"times_the_others", slowest.times,
                 "step of the slowest device against the others"};
  // Without it the others share its work.
  const auto count = static_cast<double>(slowest.others.size());
  const double without = (count + 1) / count / slowest.times;
  if (without < 1 - limits::worth_changing && now.strategy == StrategyKind::mirrored) {
    found.remedy = {.settings = {"training.visible_gpus=" + join(slowest.others, ",")},
                    .why = "the others are faster without it"};
    found.expected_gain = 1 - without;
  } else {
    found.remedy = {.command = {"doctor"},
                    .why = "looks for errors, throttling and other programs on that device"};
    found.expected_gain = 1 - 1 / slowest.times;
  }
  return found;
}

Found throttled(const Figures& figures, const Circumstances& now) {
  (void)now;
  for (const DeviceFigures& device : figures.devices) {
    if (!device.holds_model && !device.prepares) continue;
    const bool braked = device.braked >= limits::braked_readings;
    const bool capped = device.power_capped >= limits::braked_readings && device.clock >= 0 &&
                        device.clock < limits::power_capped_clock;
    // An idle card lowers its clock by itself.
    const bool held = device.clock >= 0 && device.clock < limits::held_down_clock &&
                      device.utilisation.count > 0 && device.utilisation.mean >= limits::busy;
    if (!braked && !capped && !held) continue;
    const double lost = device.clock >= 0 ? 1 - device.clock : device.braked;
    Diagnosis found{.verdict = Bottleneck::throttled, .expected_gain = lost};
    found.evidence = {{"clock_share", device.clock, clock_words(device)}};
    if (braked || capped) {
      found.evidence.push_back(
          {"throttled_share", braked ? device.braked : device.power_capped,
           fmt::format("{} held it down in {} of the readings",
                       braked ? "heat or a power brake" : "the power limit",
                       percent(braked ? device.braked : device.power_capped))});
    } else {
      found.evidence.push_back({"utilisation", device.utilisation.mean,
                                fmt::format("it is {} busy, and neither heat nor power holds it",
                                            percent(device.utilisation.mean))});
    }
    found.named = {"clock_lost", lost, "share of the clock that is lost"};
    if (!braked && !capped) {
      found.remedy = {.why =
                          "its clock was set by hand; this gives it back (`-rac` does so for "
                          "application clocks)",
                      .outside = "nvidia-smi -rgc"};
      return found;
    }
    std::vector<std::string> cooler;
    for (const DeviceFigures& other : figures.devices)
      if (&other != &device && !other.holds_model && !other.prepares &&
          other.braked < limits::braked_readings)
        cooler.push_back(std::to_string(other.index));
    if (!cooler.empty() && device.holds_model) {
      found.remedy = {.settings = {"training.visible_gpus=" + cooler.front()},
                      .why = "another GPU is there that is not held down"};
    } else {
      found.remedy = {.command = {"monitor", "--once"},
                      .why =
                          "shows clocks, temperature, power and the reasons, while you look "
                          "at its cooling and power limit"};
    }
    return found;
  }
  // No clocks were read: a busy device that gets slower and slower.
  double busy = 0;
  for (const DeviceFigures& device : figures.devices) {
    if (device.clock >= 0) return std::nullopt;
    if (device.holds_model && device.utilisation.count > 0)
      busy = std::max(busy, device.utilisation.mean);
  }
  if (figures.drift < limits::slows_down || busy < limits::busy ||
      wait_share(figures) >= limits::worth_changing) {
    return std::nullopt;
  }
  Diagnosis found{.verdict = Bottleneck::throttled, .expected_gain = 1 - 1 / figures.drift};
  found.evidence = {{"drift", figures.drift,
                     fmt::format("the last third of the steps takes {:.2f} times as long as the "
                                 "first, on a device that is {} busy and waits for nothing",
                                 figures.drift, percent(busy))}};
  found.named = {"clock_lost", 1 - 1 / figures.drift, "share of the first steps' speed lost"};
  found.remedy = {.command = {"monitor", "--once"},
                  .why = "shows clocks, temperature, power and the reasons"};
  return found;
}

Found short_of_memory(const Figures& figures, const Circumstances& now) {
  if (figures.parts <= 1) return std::nullopt;
  const DeviceFigures* device = fullest_of(figures);
  Diagnosis found{.verdict = Bottleneck::memory_pressure};
  found.evidence.push_back(
      {"parts", static_cast<double>(figures.parts),
       fmt::format("batches did not fit and are worked on in {} parts", figures.parts)});
  if (device)
    found.evidence.push_back(
        {"memory_share", fullness(*device),
         fmt::format("{} held {} of {}", device->name, format_bytes(device->peak),
                     format_bytes(device->limit))});
  found.named = {"memory_share", device ? fullness(*device) : 1, "share of the memory in use"};
  found.remedy = less_memory(figures, now, device);
  // Each part pays a step's fixed costs again; a twentieth of them is the least that is seen.
  const double launching = figures.operations * figures.launch_cost;
  const double fixed = std::min(0.5, launching / std::max(figures.replay.median, 1e-9));
  found.expected_gain =
      std::max(limits::worth_changing, fixed * (1 - 1 / static_cast<double>(figures.parts)));
  return found;
}

Found nearly_full(const Figures& figures, const Circumstances& now) {
  const DeviceFigures* device = fullest_of(figures);
  if (!device || fullness(*device) < limits::memory_full) return std::nullopt;
  Diagnosis found{.verdict = Bottleneck::memory_pressure};
  found.evidence.push_back({"memory_share", fullness(*device),
                            fmt::format("{} held {} of {} ({}): one longer batch does not fit",
                                        device->name, format_bytes(device->peak),
                                        format_bytes(device->limit), percent(fullness(*device)))});
  found.named = {"memory_share", fullness(*device), "share of the memory in use"};
  found.remedy = less_memory(figures, now, device);
  return found;
}

}  // namespace tandem::rules
