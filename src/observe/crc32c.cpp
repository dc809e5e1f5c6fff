#include "observe/crc32c.h"

#include <array>

namespace tandem {
namespace {

constexpr uint32_t reversed_polynomial = 0x82F63B78;

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? reversed_polynomial : 0);
    table[i] = rest;
  }
  return table;
}
constexpr std::array<uint32_t, 256> table = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t sum = ~uint32_t{0};
  for (const char byte : bytes) sum = (sum >> 8) ^ table[(sum ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~sum;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t sum = crc32c(bytes);
  return ((sum >> 15) | (sum << 17)) + 0xA282EAD8;
}

}  // namespace tandem
