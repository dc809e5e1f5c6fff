#if defined(__x86_64__)
#include <immintrin.h>

#include "audio/signal/lanes.h"

// To the end of the file: templates take the instruction set from there.
#pragma GCC target("avx2,fma")
namespace tandem {
namespace {
constexpr int lane_count = 8, largest_radix = 4;

// The processor's estimate and one step of Newton's: a third of the time of its square root, and
// right to 3e-7. 1e-35 keeps zero from becoming infinite on the way;
// the maximum is its second argument when that is not a number.
inline __m256 square_root(__m256 x) {
  x = _mm256_max_ps(_mm256_set1_ps(1e-35f), x);
  const __m256 y = _mm256_rsqrt_ps(x), product = x * y;
  return product * (1.5f - 0.5f * product * y);
}
}  // namespace
}  // namespace tandem
#include "audio/signal/lanes_body.h"

namespace tandem {
extern const Lanes avx2_lanes = this_lanes("avx2");
}
#endif
