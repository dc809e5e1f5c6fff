// Random bits for draw number `step` of a key, the same on host and device.
#pragma once

#include <cstdint>

#include "nn/checksum_words.h"

namespace tandem {

// SplitMix64: all bits of key and step reach all bits of the result.
TANDEM_HOST_DEVICE inline uint64_t draw_bits(uint64_t key, uint64_t step) {
  uint64_t x = key + (step + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace tandem
