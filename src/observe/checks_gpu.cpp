#include "observe/checks_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace tandem {
namespace {

// NVML's bits of what decides the clocks.
constexpr uint64_t idle = 0x1, set_clocks = 0x2, power_cap = 0x4, hardware_slowdown = 0x8,
                   sync_boost = 0x10, software_thermal = 0x20, hardware_thermal = 0x40,
                   power_brake = 0x80, display_clocks = 0x100;
// Those that say something is wrong with cooling or power.
constexpr uint64_t harmful = hardware_slowdown | software_thermal | hardware_thermal | power_brake;

Check check_errors(const GpuHealth& gpu) {
  Check check{.name = fmt::format("GPU {} memory", gpu.index)};
  if (!gpu.ecc && !gpu.uncorrected) {
    check.found = "this card counts no memory errors";
    return check;
  }
  check.found = fmt::format(
      "ECC {}, {} uncorrected and {} corrected errors since the driver "
      "started",
      gpu.ecc.value_or(true) ? "on" : "off", gpu.uncorrected.value_or(0),
      gpu.corrected.value_or(0));
  if (gpu.rows_remapped.value_or(0) > 0)
    check.found += fmt::format(", {} rows replaced", *gpu.rows_remapped);
  if (gpu.rows_failed) {
    check.verdict = Verdict::fail;
    check.found += ", a row could not be replaced";
    check.advice = "this card is worn out: leave it out (training.visible_gpus) and replace it";
  } else if (gpu.uncorrected.value_or(0) > 0) {
    check.verdict = Verdict::fail;
    check.advice = fmt::format(
        "its memory gave wrong values: reset it (nvidia-smi --gpu-reset -i {}) or restart the "
        "machine; if they come back, replace the card",
        gpu.index);
  } else if (gpu.rows_pending) {
    check.verdict = Verdict::warn;
    check.found += ", bad rows wait to be replaced";
    check.advice =
        fmt::format("reset it before a long run: nvidia-smi --gpu-reset -i {}", gpu.index);
  }
  return check;
}

Check check_clocks(const GpuHealth& gpu) {
  Check check{.name = fmt::format("GPU {} clocks", gpu.index)};
  if (!gpu.clock_reasons && !gpu.clock) {
    check.verdict = Verdict::skip;
    check.found = "the driver does not say";
    return check;
  }
  if (gpu.clock && gpu.most_clock)
    check.found = fmt::format("{} of {} MHz", *gpu.clock, *gpu.most_clock);
  const uint64_t reasons = gpu.clock_reasons.value_or(0);
  const std::string why = clock_reasons_text(reasons);
  if (!why.empty()) check.found += (check.found.empty() ? "" : ", ") + why;
  if (check.found.empty()) check.found = "nothing holds them down";
  if (reasons & (hardware_thermal | software_thermal)) {
    check.verdict = Verdict::warn;
    check.advice = "it slows down to cool: check fans, airflow and neighbours before a long run";
  } else if (reasons & harmful) {
    check.verdict = Verdict::warn;
    check.advice = "its power supply holds it back: check cables and the supply's load";
  }
  return check;
}

std::optional<Check> check_link(const GpuHealth& gpu) {
  if (!gpu.link_lanes || !gpu.most_link_lanes || *gpu.link_lanes >= *gpu.most_link_lanes)
    return std::nullopt;
  return Check{.verdict = Verdict::warn,
               .name = fmt::format("GPU {} slot", gpu.index),
               .found = fmt::format("{} PCIe lanes of the {} the card has", *gpu.link_lanes,
                                    *gpu.most_link_lanes),
               .advice = "copies are slower by that: seat it anew or use another slot"};
}

std::string tenants_text(const std::vector<GpuTenant>& tenants) {
  constexpr size_t told = 3;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(told, tenants.size()); ++i) {
    const GpuTenant& one = tenants[i];
    std::string word = one.name.empty() ? fmt::format("process {}", one.pid)
                                        : fmt::format("{} (process {})", one.name, one.pid);
    if (one.memory) word += fmt::format(" with {}", format_bytes(*one.memory));
    words.push_back(word);
  }
  if (tenants.size() > told) words.push_back(fmt::format("{} more", tenants.size() - told));
  return join(words, ", ");
}

Check check_tenants(const GpuHealth& gpu) {
  Check check{.name = fmt::format("GPU {} tenants", gpu.index),
              .found = gpu.tenants.empty() ? "no other process" : tenants_text(gpu.tenants)};
  if (gpu.mode == GpuHealth::Mode::prohibited) {
    check.verdict = Verdict::fail;
    check.found += "; its mode lets no process compute";
    check.advice = fmt::format("nvidia-smi -i {} -c DEFAULT", gpu.index);
  } else if (!gpu.tenants.empty() && gpu.mode == GpuHealth::Mode::one_process) {
    check.verdict = Verdict::fail;
    check.found += "; its mode lets one process compute";
    check.advice = "end that process, choose another GPU, or nvidia-smi -c DEFAULT";
  } else if (!gpu.tenants.empty()) {
    check.verdict = Verdict::warn;
    check.advice = "they take its time and memory: end them or choose another with --visible-gpus";
  }
  return check;
}

}  // namespace

std::string clock_reasons_text(uint64_t reasons) {
  const std::pair<uint64_t, const char*> words[] = {
      {idle, "idle"},
      {set_clocks, "clocks set by hand"},
      {power_cap, "at its power cap"},
      {hardware_slowdown, "slowed down by the hardware"},
      {sync_boost, "in step with other GPUs"},
      {software_thermal, "slowed down by the driver to cool"},
      {hardware_thermal, "slowed down by the hardware to cool"},
      {power_brake, "braked by the power supply"},
      {display_clocks, "clocks of the display"}};
  std::vector<std::string> found;
  for (const auto& [bit, word] : words)
    if (reasons & bit) found.push_back(word);
  return join(found, ", ");
}

std::vector<Check> check_gpu_health(const GpuHealth& gpu) {
  std::vector<Check> checks{check_errors(gpu), check_clocks(gpu)};
  if (auto link = check_link(gpu)) checks.push_back(*link);
  checks.push_back(check_tenants(gpu));
  return checks;
}

std::vector<Check> check_peers(const GpuProbe& probe) {
  if (probe.gpus.size() < 2 || probe.source == "simulated") return {};
  Check check{.name = "peer access"};
  if (probe.source != "nvml") {
    check.verdict = Verdict::skip;
    check.found = "not known without NVML";
    return {check};
  }
  size_t pairs = 0, direct = 0, links = 0;
  std::string example;
  for (const GpuInfo& from : probe.gpus) {
    for (const GpuInfo& to : probe.gpus) {
      if (from.index == to.index) continue;
      ++pairs;
      const auto reaches = [&](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), to.index) != list.end();
      };
      links += reaches(from.nvlinks);
      if (reaches(from.peers)) {
        ++direct;
      } else if (example.empty()) {
        example = fmt::format(", not GPU {} and GPU {}", from.index, to.index);
      }
    }
  }
  check.found = fmt::format("{} of {} pairs read each other's memory ({} over NVLink){}",
                            direct / 2, pairs / 2, links / 2, example);
  if (direct < pairs) {
    check.verdict = Verdict::warn;
    check.advice =
        "the other pairs copy through pinned host memory; choose neighbours with --data-gpu and "
        "--model-gpu (nvidia-smi topo -m)";
  }
  return {check};
}

}  // namespace tandem
