// Where and when figures were measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct BenchOrigin {
  std::string date;    // "2026-11-15T12:00:00Z"
  std::string commit;  // of the checkout the program runs from, "-dirty" when it was changed; or ""
  std::string cpu;     // its model, as the system names it
  int64_t cores = 0;   // this process may use
  int64_t memory = 0;  // bytes
  std::vector<std::string> devices = {};  // "NVIDIA H200", "simulated GPU": every visible one

  std::string machine() const;  // "NVIDIA H200, 16 cores of AMD EPYC 9554, 128.0 GiB"
};

// The devices of the registry: call it after they were configured.
BenchOrigin bench_origin();

}  // namespace tandem
