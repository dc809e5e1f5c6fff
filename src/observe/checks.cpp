#include "observe/checks.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "util/host_memory.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr uint64_t gib = uint64_t{1} << 30;

std::pair<int64_t, int64_t> parse_version(const std::string& text) {
  const auto parts = split(text, '.');
  return {parse_int(parts[0]).value_or(0), parts.size() > 1 ? parse_int(parts[1]).value_or(0) : 0};
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "PASS";
    case Verdict::warn: return "WARN";
    case Verdict::fail: return "FAIL";
    case Verdict::skip: return "SKIP";
  }
  return "";
}

Check check_build(const std::string& torch, const std::string& cuda) {
  Check check{.name = "build",
              .found = fmt::format("LibTorch {}, {}", torch,
                                   cuda.empty() ? "without CUDA" : "CUDA " + cuda)};
  if (cuda.empty()) {
    check.verdict = Verdict::warn;
    check.advice = "this program cannot use GPUs; build it where nvcc is installed";
  }
  return check;
}

Check check_driver(const GpuProbe& probe, const std::string& libtorch_cuda) {
  Check check{.name = "driver"};
  if (probe.source == "none") {
    check.verdict = Verdict::warn;
    check.found = "neither NVML nor a CUDA driver";
    check.advice = "install NVIDIA's driver if this machine has a GPU";
    return check;
  }
  check.found = fmt::format("{}, serves CUDA {}; LibTorch wants {}",
                            probe.driver_version.empty() ? "version unknown" : probe.driver_version,
                            probe.cuda_version, libtorch_cuda.empty() ? "none" : libtorch_cuda);
  // A driver serves every CUDA of its own major version and all older ones.
  if (!libtorch_cuda.empty() &&
      parse_version(probe.cuda_version).first < parse_version(libtorch_cuda).first) {
    check.verdict = Verdict::fail;
    check.advice =
        fmt::format("update the driver to one that serves CUDA {} or newer", libtorch_cuda);
  }
  return check;
}

std::vector<Check> check_gpus(const GpuProbe& probe) {
  if (probe.gpus.empty()) {
    return {{.verdict = Verdict::warn,
             .name = "GPUs",
             .found = "none visible: everything runs on the CPU",
             .advice = "check CUDA_VISIBLE_DEVICES; --simulate-gpus runs every plan without one"}};
  }
  std::vector<Check> checks;
  for (const GpuInfo& gpu : probe.gpus) {
    Check check{.name = fmt::format("GPU {}", gpu.index),
                .found = fmt::format("{}, {} of {} in use", gpu.name, format_bytes(gpu.memory_used),
                                     format_bytes(gpu.memory_total))};
    const auto [major, minor] = parse_version(gpu.compute_capability);
    if (!gpu.compute_capability.empty() && major * 10 + minor < 75) {
      check.verdict = Verdict::fail;
      check.advice =
          fmt::format("compute capability {} is below 7.5, the oldest that CUDA 13 serves",
                      gpu.compute_capability);
    } else if (gpu.memory_used > gpu.memory_total / 2) {
      check.verdict = Verdict::warn;
      check.advice = "another process holds more than half of its memory: see nvidia-smi";
    } else if (gpu.temperature.value_or(0) >= 85) {
      check.verdict = Verdict::warn;
      check.advice =
          fmt::format("{} C: it may slow down to cool; check the fans", *gpu.temperature);
    }
    checks.push_back(check);
  }
  return checks;
}

Check check_pinned_memory(uint64_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  Check check{.name = "pinned memory",
              .found = limit.rlim_cur == RLIM_INFINITY
                           ? "no limit"
                           : fmt::format("limit {}", format_bytes(limit.rlim_cur))};
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool taken = block != MAP_FAILED;
  const bool locked = taken && ::mlock(block, bytes) == 0;
  const int error = errno;
  if (taken) ::munmap(block, bytes);  // unlocks too
  check.found += locked ? fmt::format("; {} were locked on trial", format_bytes(bytes))
                        : fmt::format("; locking {} on trial failed: {}", format_bytes(bytes),
                                      std::strerror(error));
  if (!locked) {
    check.verdict = Verdict::warn;
    check.advice =
        "raise it: ulimit -l unlimited (a container: --ulimit memlock=-1), or set "
        "data.pin_memory=false, with slower copies";
  }
  return check;
}

Check check_shared_memory(const std::string& folder) {
  constexpr uint64_t enough = uint64_t{256} << 20;
  Check check{.name = "shared memory"};
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) {
    check.verdict = Verdict::warn;
    check.found = fmt::format("`{}`: {}", folder, error.message());
    check.advice = "Tandem needs none; NCCL and Python loaders beside it do: mount a tmpfs there";
    return check;
  }
  check.found = fmt::format("{} free of {} in `{}`", format_bytes(space.available),
                            format_bytes(space.capacity), folder);
  if (space.available < enough) {
    check.verdict = Verdict::warn;
    check.advice =
        "Tandem needs none; NCCL and Python loaders beside it do: a container takes "
        "--shm-size=1g";
  }
  return check;
}

Check check_host_memory() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t allowed = control_group_limit();
  const uint64_t whole = std::min(pages * page, allowed);
  Check check{.name = "memory",
              .found = fmt::format("{}{}, {} free", format_bytes(whole),
                                   whole == allowed ? ", the container's limit" : "",
                                   format_bytes(available_host_memory()))};
  if (whole < 8 * gib) {
    check.verdict = Verdict::warn;
    check.advice = "under 8 GiB: use a small --buffer-size";
  }
  return check;
}

Check check_disk(const std::string& folder) {
  Check check{.name = "disk"};
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) {
    check.verdict = Verdict::fail;
    check.found = fmt::format("`{}`: {}", folder, error.message());
    check.advice = "work in a folder that exists";
    return check;
  }
  check.found = fmt::format("{} free for `{}`", format_bytes(space.available), folder);
  if (access(folder.c_str(), W_OK) != 0) {
    check.verdict = Verdict::fail;
    check.found += ", not writable";
    check.advice = "checkpoints and outputs cannot be written there";
  } else if (space.available < gib) {
    check.verdict = Verdict::fail;
    check.advice = "under 1 GiB: checkpoints will not fit";
  } else if (space.available < 10 * gib) {
    check.verdict = Verdict::warn;
    check.advice = "under 10 GiB: a full-size checkpoint takes about 5";
  }
  return check;
}

Check check_open_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  Check check{.name = "open files", .found = fmt::format("limit {}", limit.rlim_cur)};
  if (limit.rlim_cur < 1024) {
    check.verdict = Verdict::warn;
    check.advice = "raise it: ulimit -n 4096";
  }
  return check;
}

Check check_cores() {
  const unsigned cores = std::thread::hardware_concurrency();
  Check check{.name = "CPU cores", .found = std::to_string(cores)};
  if (cores < 4) {
    check.verdict = Verdict::warn;
    check.advice = "under 4: preparing data may not keep up with a GPU";
  }
  return check;
}

}  // namespace tandem
