#include "checkpoint/crc32.h"

#include <array>
#include <cstring>

namespace tandem {
namespace {

// Eight tables, so that eight bytes are taken at a time.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0u);
    tables[0][byte] = value;
  }
  for (size_t table = 1; table < 8; ++table) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[table - 1][byte];
      tables[table][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

uint32_t crc32(std::string_view bytes) {
  uint32_t sum = 0xffffffff;
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    word ^= sum;
    sum = 0;
    for (size_t i = 0; i < 8; ++i) sum ^= tables[7 - i][(word >> (8 * i)) & 0xff];
    bytes.remove_prefix(8);
  }
  for (const char byte : bytes)
    sum = (sum >> 8) ^ tables[0][(sum ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~sum;
}

}  // namespace tandem
