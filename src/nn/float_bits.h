// Numbers as the bits they are made of, on the CPU and a GPU. A bfloat16 is the upper half of a
// float32; two of them share 32 bits, the first in the lower half.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define TANDEM_CELL __host__ __device__ __forceinline__
#else
#define TANDEM_CELL inline
#endif

namespace tandem {

TANDEM_CELL float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
TANDEM_CELL uint32_t to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TANDEM_CELL float first_of_pair(uint32_t bits) { return from_bits(bits << 16); }
TANDEM_CELL float second_of_pair(uint32_t bits) { return from_bits(bits & 0xffff0000u); }

}  // namespace tandem
