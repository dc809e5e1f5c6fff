#include "audio/signal/lanes.h"

namespace tandem {

extern const Lanes portable_lanes;
#if defined(__x86_64__)
extern const Lanes avx2_lanes, avx512_lanes;
#endif

std::vector<const Lanes*> available_lanes() {
  std::vector<const Lanes*> found{&portable_lanes};
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) found.push_back(&avx2_lanes);
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    found.push_back(&avx512_lanes);
#endif
  return found;
}

const Lanes& lanes() {
  static const Lanes& fastest = *available_lanes().back();
  return fastest;
}

}  // namespace tandem
