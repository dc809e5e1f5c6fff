#if defined(__x86_64__)
#include <immintrin.h>

#include "audio/signal/lanes.h"

// To the end of the file: templates take the instruction set from there.
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,avx2")
namespace tandem {
namespace {
constexpr int lane_count = 16, largest_radix = 8;

// The processor's estimate and one step of Newton's: a third of the time of its square root, and
// right to 3e-7. 1e-35 keeps zero from becoming infinite on the way;
// the maximum is its second argument when that is not a number.
inline __m512 square_root(__m512 x) {
  x = _mm512_maskz_max_ps(0xffff, _mm512_set1_ps(1e-35f), x);
  const __m512 y = _mm512_maskz_rsqrt14_ps(0xffff, x), product = x * y;
  return product * (1.5f - 0.5f * product * y);
}
}  // namespace
}  // namespace tandem
#include "audio/signal/lanes_body.h"

namespace tandem {
extern const Lanes avx512_lanes = this_lanes("avx512");
}
#endif
