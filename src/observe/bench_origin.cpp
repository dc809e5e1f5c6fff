#include "observe/bench_origin.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <exception>
#include <fstream>

#include "config/config_dir.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "util/child_process.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos)
      return trim(line.substr(colon + 1));
  }
  return "unknown CPU";
}

int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// An installed program has no checkout, and a machine may have no git: then there is no commit.
std::string checked_out_commit() {
  std::string folder;
  try {
    folder = config_dir().parent_path().string();
  } catch (const std::exception&) {
    return "";
  }
  ChildProcess git(
      {"git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"},
      {.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10)});
  if (git.start_error() != 0) return "";
  const std::string text = trim(git.read_all());
  return git.wait() == 0 ? text : "";
}

}  // namespace

std::string BenchOrigin::machine() const {
  std::string text = devices.empty() ? "" : join(devices, " + ") + ", ";
  return text +
         fmt::format("{} cores of {}, {}", cores, cpu, format_bytes(static_cast<uint64_t>(memory)));
}

BenchOrigin bench_origin() {
  BenchOrigin origin{.date = now_text(),
                     .commit = checked_out_commit(),
                     .cpu = cpu_model(),
                     .cores = usable_cores(),
                     .memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<int64_t>(sysconf(_SC_PAGE_SIZE))};
  for (const auto& device : DeviceRegistry::get().gpus())
    origin.devices.push_back(device->info().hardware);
  return origin;
}

}  // namespace tandem
