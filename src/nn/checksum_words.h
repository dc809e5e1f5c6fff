// What host and device share: how one 32-bit word at one place enters the sum.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define TANDEM_HOST_DEVICE __host__ __device__
#else
#define TANDEM_HOST_DEVICE
#endif

namespace tandem {

TANDEM_HOST_DEVICE inline uint64_t mixed_word(uint64_t place, uint32_t word) {
  uint64_t x = (place << 32 | word) * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Adds the checksum of `bytes` bytes to the uint64 at `sum`, on the current CUDA stream.
// checksum.cu.
void checksum_on_device(const void* data, int64_t bytes, void* sum);

}  // namespace tandem
