// Pre-flight checks: each looks at one thing of the machine and says what it found and what to do.
#pragma once

#include <string>
#include <vector>

#include "device/probe.h"

namespace tandem {

enum class Verdict { pass, warn, fail };
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
Check check_host_memory();
Check check_disk(const std::string& folder);
Check check_open_files();
Check check_cores();
Check check_build(const std::string& torch, const std::string& cuda);

}  // namespace tandem
