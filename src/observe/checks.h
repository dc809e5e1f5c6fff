// Pre-flight checks: each looks at one thing and says what it found, with its figure, and what to
// do about it. Here those of the build, the driver and the host; checks_gpu.h, checks_storage.h,
// checks_dataset.h, checks_settings.h and checks_model.h have the others. None throws for what it
// finds: that is a verdict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/probe.h"

namespace tandem {

enum class Verdict { pass, warn, fail, skip /* cannot be looked at here */ };
const char* to_string(Verdict verdict);

struct Check {
  Verdict verdict = Verdict::pass;
  std::string name;
  std::string found;
  std::string advice;  // empty when there is nothing to do
};

// LibTorch's CUDA against what the driver serves: "13.0" needs a driver of the same or a newer
// major.
Check check_driver(const GpuProbe& probe, const std::string& libtorch_cuda);
std::vector<Check> check_gpus(const GpuProbe& probe);
// What the machine has, or what the container may use of it.
Check check_host_memory();
Check check_disk(const std::string& folder);
Check check_open_files();
Check check_cores();
Check check_build(const std::string& torch, const std::string& cuda);

// Page-locked memory: the limit of `ulimit -l`, and whether `bytes` can really be locked.
Check check_pinned_memory(uint64_t bytes = uint64_t{64} << 20);
// Tandem's workers are threads and need none of it; collectives of other programs and Python
// loaders beside it do.
Check check_shared_memory(const std::string& folder = "/dev/shm");

}  // namespace tandem
