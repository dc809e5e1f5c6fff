// Randomness that is counted, not streamed: every draw is a function of (seed, purpose, id, count),
// so it does not depend on threads, batch sizes, device counts or resuming.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

// SplitMix64's finaliser: every bit of the input reaches every bit of the output.
constexpr uint64_t mix_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix_bits(hash);
}

constexpr uint64_t counted_draw(uint64_t seed, std::string_view purpose, uint64_t id,
                                uint64_t count) {
  return mix_bits(mix_bits(mix_bits(mix_bits(seed) ^ hash_text(purpose)) ^ id) ^ count);
}

// Uniform in [0, bound) without bias worth speaking of (bound is far below 2^64).
constexpr uint64_t counted_below(uint64_t bound, uint64_t seed, std::string_view purpose,
                                 uint64_t id, uint64_t count) {
  return static_cast<uint64_t>(
      (static_cast<unsigned __int128>(counted_draw(seed, purpose, id, count)) * bound) >> 64);
}

}  // namespace tandem
