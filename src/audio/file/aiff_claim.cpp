#include "audio/file/aiff_claim.h"

#include <array>
#include <cstring>

namespace tandem {
namespace {

int64_t big_endian(const std::byte* bytes) {
  int64_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | std::to_integer<int64_t>(bytes[i]);
  return number;
}

}  // namespace

int64_t frames_claimed_by_aiff(ByteSource& source) {
  constexpr int most_chunks = 64;
  std::array<std::byte, 16> chunk;
  int64_t place = 12;
  for (int i = 0; i < most_chunks; ++i) {
    if (source.read_at(place, chunk) < static_cast<int64_t>(chunk.size())) return 0;
    if (std::memcmp(chunk.data(), "COMM", 4) == 0) return big_endian(chunk.data() + 10);
    const int64_t length = big_endian(chunk.data() + 4);
    place += 8 + length + length % 2;
  }
  return 0;
}

}  // namespace tandem
