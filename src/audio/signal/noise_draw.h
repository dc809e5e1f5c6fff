// What host and device share: the noise at one place. Whole numbers until the last step, so that it
// is the same to the bit everywhere.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define TANDEM_NOISE_SHARED __host__ __device__
#else
#define TANDEM_NOISE_SHARED
#endif

namespace tandem {

// The sum of four draws from 0 .. 65535, moved to mean 0 and variance 1: bell-shaped, within 3.5.
// `key` ^ `place` is mixed as mix_bits() of util/counted_random.h does.
TANDEM_NOISE_SHARED inline float noise_at(uint64_t key, uint64_t place) {
  uint64_t x = (key ^ place) + 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  const auto sum =
      static_cast<int32_t>((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48));
  return static_cast<float>(sum - 131070) * 2.64289979e-05f;
}

}  // namespace tandem
